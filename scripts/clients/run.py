"""Holds a long conversation with each client through the proxy, and the same without it, and says how they compare.

Called by scripts/test-clients, which installs the clients and takes the network away.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import agents
import conversation
from prices import Prices
from tap import Tap

HERE = Path(__file__).resolve().parent
SWAPS_MIN = 3
CLIENT_SECONDS_MAX = 600
QUIET_SECONDS_MAX = 30


@dataclass
class Client:
    """A client program, the model that it asks, and how it is to ask."""

    name: str
    model: str
    command: list[str] | None
    hows: list[str] = field(default_factory=lambda: ["plain"])
    path: str = ""
    turns: int = 30
    sentences: int = 24
    window: int = 20_000
    agent: object = None


ALL_HOWS = ["plain", "stream", "runner", "count", "parallel", "events"]
PYTHON = [sys.executable]


def clients(cache: Path) -> list[Client]:
    node = [os.environ.get("NODE", "node")]
    js = lambda name: [*node, str(cache / "node" / name)]
    py = lambda name: [*PYTHON, str(HERE / name)]
    chat = ["plain", "stream", "parallel"]
    no_runner = [how for how in ALL_HOWS if how != "runner"]
    return [
        Client("anthropic-python", "claude-opus-5-5", py("anthropic_python.py"), ALL_HOWS),
        Client("anthropic-typescript", "claude-sonnet-5", js("anthropic.mjs"), ALL_HOWS),
        Client("openai-python-chat", "gpt-5.4", py("openai_chat.py"), [*chat, "events"], "/v1"),
        Client("openai-python-responses", "gpt-5.6-sol", py("openai_responses.py"), ALL_HOWS, "/v1"),
        Client("openai-typescript-chat", "gpt-5.4", js("openai-chat.mjs"), [*chat, "runner"], "/v1"),
        Client("openai-typescript-responses", "gpt-6-sol", js("openai-responses.mjs"), no_runner, "/v1"),
        Client("langchain-anthropic", "claude-sonnet-5-5", py("langchain_models.py"), ["plain", "stream", "batch"]),
        Client("langchain-openai", "gpt-5.4", py("langchain_models.py"), ["plain", "stream", "batch"], "/v1"),
        Client("litellm-anthropic", "claude-haiku-4-5", py("litellm_client.py"), chat),
        Client("litellm-openai", "gpt-4.1", py("litellm_client.py"), chat, "/v1"),
        Client("pydantic-ai-anthropic", "claude-sonnet-5", py("pydantic_ai_client.py"), ["plain", "stream"]),
        Client("pydantic-ai-openai", "gpt-5.6-terra", py("pydantic_ai_client.py"), ["plain", "stream"], "/v1"),
        *agents.clients(Client, cache),
    ]


class Server:
    """A `throughline` that runs in the background; `url` is where it says that it listens."""

    def __init__(self, command: list[str], log: Path):
        self._log = open(log, "w", encoding="utf-8")
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True)
        self.url = ""
        for line in self._process.stdout:
            found = re.search(r"http://[0-9.]+:\d+", line)
            if found:
                self.url = found.group()
                break
        if not self.url:
            raise RuntimeError(f"{' '.join(command)} did not start: see {log}")
        threading.Thread(target=lambda: [None for _ in self._process.stdout], daemon=True).start()

    def close(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()


@dataclass
class Outcome:
    """What one conversation came to."""

    answer: str = ""
    observed: dict = field(default_factory=dict)
    swaps: int = 0
    refused: list[str] = field(default_factory=list)
    declined: int = 0
    requests: int = 0
    dollars: float = 0.0
    updates: float = 0.0
    # What the proxy itself says of it.
    told_dollars: float = 0.0
    unbilled: int = 0
    failure: str = ""
    reasons: dict = field(default_factory=dict)


def hold(client: Client, throughline: str, prices: Prices, folder: Path, through_proxy: bool) -> Outcome:
    """The whole conversation, with the proxy or without."""
    folder.mkdir(parents=True)
    simulate = [throughline, "simulate", "--listen", "127.0.0.1:0", "--latency", "none"]
    simulate += ["--record", str(folder / "bodies.jsonl")]
    if through_proxy:
        simulate += ["--window", str(client.window)]
    servers = [Server(simulate, folder / "simulate.log")]
    behind = Tap(servers[0].url)
    before = None
    outcome = Outcome()
    try:
        url = behind.url
        if through_proxy:
            serve = [throughline, "serve", "--listen", "127.0.0.1:0", "--window", str(client.window)]
            serve += ["--anthropic-upstream", behind.url, "--openai-upstream", behind.url]
            serve += ["--data", str(folder / "data")]
            servers.append(Server(serve, folder / "serve.log"))
            before = Tap(servers[1].url)
            url = before.url
        conversation.write(str(folder / "turns.json"), client.hows, client.turns, client.sentences)
        environment = environment_of(client, url, folder)
        outcome.answer, outcome.observed = (
            client.agent(folder, environment) if client.agent else program(client, folder, environment)
        )
    except (RuntimeError, OSError, subprocess.TimeoutExpired, ValueError) as error:
        outcome.failure = str(error) or type(error).__name__
    finally:
        wait_until_quiet(behind)
        if before is not None:
            with contextlib.suppress(OSError):
                text = urllib.request.urlopen(servers[1].url + "/metrics", timeout=10).read().decode()
                (folder / "metrics.txt").write_text(text, encoding="utf-8")
                told = re.findall(r"^throughline_cost_dollars_total\S* (\S+)$", text, re.MULTILINE)
                outcome.told_dollars = sum(map(float, told))
            before.close()
        for server in reversed(servers):
            server.close()
        behind.close()
    judge(outcome, client, prices, behind, before, folder)
    return outcome


def environment_of(client: Client, url: str, folder: Path) -> dict:
    """What a client finds in its environment: nothing of the caller's but the path and the proxy that leads nowhere."""
    home = folder / "home"
    home.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "BASE_URL": url + client.path,
        "MODEL": client.model,
        "CLIENT": client.name,
        "TURNS": str(folder / "turns.json"),
        "PYTHONPATH": str(HERE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_PROXY": "127.0.0.1,localhost",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LANGSMITH_TRACING": "false",
    }
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy"):
        if name in os.environ:
            environment[name] = os.environ[name]
    return environment


def wait_until_quiet(behind: Tap) -> None:
    """Memories that are still being made belong to the price."""
    quiet_since = time.monotonic()
    until = quiet_since + QUIET_SECONDS_MAX
    while time.monotonic() - quiet_since < 1 and time.monotonic() < until:
        time.sleep(0.1)
        if not behind.is_quiet():
            quiet_since = time.monotonic()


def program(client: Client, folder: Path, environment: dict) -> tuple[str, dict]:
    run = subprocess.run(
        client.command, env=environment, cwd=folder, capture_output=True, text=True, timeout=CLIENT_SECONDS_MAX
    )
    (folder / "client.out").write_text(run.stdout + run.stderr, encoding="utf-8")
    if run.returncode != 0:
        last = [line for line in (run.stderr or run.stdout).splitlines() if line.strip()]
        raise RuntimeError(f"the client ended with {run.returncode}: {last[-1] if last else 'nothing said'}")
    observed = json.loads(run.stdout.strip().splitlines()[-1])
    return observed.pop("answer"), observed


def judge(outcome: Outcome, client: Client, prices: Prices, behind: Tap, before: Tap | None, folder: Path) -> None:
    """What went through the taps, as numbers; all of it is kept in the folder."""
    for name, tap in (("provider", behind), ("client", before)):
        if tap is None:
            continue
        with open(folder / f"{name}.jsonl", "w", encoding="utf-8") as file:
            for seen in tap.seen:
                file.write(json.dumps(seen) + "\n")
    for seen in behind.seen:
        if seen["method"] == "POST" and seen["status"] >= 400:
            outcome.refused.append(f"{seen['status']} {seen['path']}: {seen.get('error', '')[:300]}")
        asks = seen["status"] == 200 and re.search(r"/(messages|completions|responses|compact)$", seen["path"])
        if asks and seen["method"] == "POST":
            if seen["usage"]:
                dollars = prices.dollars(seen["body"]["model"], seen["usage"])
                outcome.dollars += dollars
                if seen["headers"].get("user-agent", "").startswith("throughline/"):
                    outcome.updates += dollars
            else:
                outcome.unbilled += 1
    epoch, covers = 0, set()
    for seen in before.seen if before is not None else []:
        headers = seen.get("answer_headers", {})
        if seen["method"] != "POST":
            continue
        outcome.requests += 1
        epoch = max(epoch, int(headers.get("x-throughline-epoch", 0)))
        covers.add(int(headers.get("x-throughline-covered", 0)))
        done = " ".join(filter(None, [headers.get("x-throughline", "own"), headers.get("x-throughline-reason")]))
        outcome.reasons[done] = outcome.reasons.get(done, 0) + 1
        if seen["status"] >= 400:
            if "thread_unsupported_request" in seen.get("error", ""):
                outcome.declined += 1
            elif not any(seen.get("error", "x")[:200] in refused for refused in outcome.refused):
                outcome.refused.append(f"proxy {seen['status']} {seen['path']}: {seen.get('error', '')[:300]}")
    # An epoch also begins where a swap is taken back; then nothing is covered that was not before.
    outcome.swaps = min(epoch, len(covers - {0}))


def problems(through: Outcome, without: Outcome) -> list[str]:
    found = []
    if through.failure:
        found.append(through.failure)
    if through.swaps < SWAPS_MIN:
        found.append(f"{through.swaps} swaps")
    if through.refused:
        found.append(f"{len(through.refused)} refused: {through.refused[0]}")
    if conversation.FACT not in through.answer:
        found.append(f"the fact is not known: {through.answer[:200]!r}")
    if without.failure:
        found.append(f"without the proxy: {without.failure}")
    if through.unbilled or without.unbilled:
        found.append(f"answers without usage: {through.unbilled} and {without.unbilled}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="test-clients")
    parser.add_argument("names", nargs="*", help="clients to run; all without a name")
    parser.add_argument("--list", action="store_true", help="name the clients and end")
    parser.add_argument("--keep", metavar="DIR", help="keep what was said, seen and stored in this folder")
    parser.add_argument("--window", type=int, metavar="N", help="window of the models in tokens, instead of each client's")
    parser.add_argument("--turns", type=int, metavar="N", help="turns of the conversation, instead of each client's")
    parser.add_argument("--model", metavar="M", help="model that is asked, instead of each client's")
    options = parser.parse_args()
    known = clients(Path(os.environ["CLIENTS_CACHE"]))
    for client in known:
        client.window = options.window or client.window
        client.turns = options.turns or client.turns
        client.model = options.model or client.model
    if options.list:
        print("\n".join(client.name for client in known))
        return 0
    unknown = [name for name in options.names if not any(client.name.startswith(name) for client in known)]
    if unknown:
        print(f"test-clients: there is no client {', '.join(unknown)}; --list names them", file=sys.stderr)
        return 2
    throughline = os.environ["THROUGHLINE"]
    prices = Prices(throughline)
    kept = Path(options.keep or tempfile.mkdtemp(prefix="test-clients-")).resolve()
    kept.mkdir(parents=True, exist_ok=True)
    failed = 0
    for client in known:
        if options.names and not any(client.name.startswith(name) for name in options.names):
            continue
        folder = kept / client.name
        shutil.rmtree(folder, ignore_errors=True)
        started = time.monotonic()
        try:
            through = hold(client, throughline, prices, folder / "with", True)
            without = hold(client, throughline, prices, folder / "without", False)
        except Exception:
            traceback.print_exc()
            return 70
        found = problems(through, without)
        failed += bool(found)
        lower = 100 * (1 - through.dollars / without.dollars) if without.dollars else 0
        fact = "known" if conversation.FACT in through.answer else "lost"
        print(
            f"{'FAIL' if found else 'pass'} {client.name:28} swaps {through.swaps:2}  refused {len(through.refused)}  "
            f"fact {fact:5}  cost ${through.dollars:.4f} with (${through.updates:.4f} for memories), ${without.dollars:.4f} without "
            f"({lower:+.0f} % saved)  "
            f"{through.requests} requests, {time.monotonic() - started:.0f} s",
            flush=True,
        )
        for problem in found:
            print(f"     {problem}", flush=True)
        summary = {"through": vars(through), "without": vars(without)}
        (folder / "summary.json").write_text(json.dumps(summary, indent=1), encoding="utf-8")
    if failed:
        print(f"test-clients: {failed} failed; everything that was seen is in {kept}", file=sys.stderr)
        return 1
    if not options.keep:
        shutil.rmtree(kept, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
