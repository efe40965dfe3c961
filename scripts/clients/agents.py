"""Coding agents in their non-interactive mode: one call of the program for each turn, resumed from the one before.

Telemetry and updates are switched off by the variables and settings that the programs document; the network is taken
away besides. They may read files and change none: what they are asked to run is made up.
"""

import json
import os
import platform
import subprocess
from pathlib import Path

TURN_SECONDS_MAX = 120
# Of the notes of a turn, in sentences: agents begin with long instructions, and want larger windows.
SENTENCES = 150


def machine() -> tuple[str, str]:
    """How npm packages with binaries name this machine."""
    arch = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()]
    return platform.system().lower(), arch


def binary(cache: Path, name: str) -> str:
    """The program itself: launchers may look for updates, or want another Node."""
    system, arch = machine()
    modules = cache / "node" / "node_modules"
    if name == "claude":
        return str(modules / f"@anthropic-ai/claude-code-{system}-{arch}/claude")
    if name == "opencode":
        return str(modules / f"opencode-{system}-{arch}/bin/opencode")
    found = sorted((modules / f"@openai/codex-{system}-{arch}/vendor").glob("*/bin/codex"))
    return str(found[0]) if found else str(modules / ".bin/codex")


class Agent:
    """Holds the conversation turn by turn; what it says and writes is kept in the folder."""

    def __init__(self, folder: Path, environment: dict):
        self.folder = folder
        self.environment = environment
        self.work = folder / "work"
        self.work.mkdir()
        (self.work / "README.md").write_text("# Billing\n\nA service that writes bills.\n", encoding="utf-8")
        subprocess.run(["git", "init", "-q"], cwd=self.work, check=True, env=environment)

    def call(self, command: list[str]) -> str:
        run = subprocess.run(
            command,
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TURN_SECONDS_MAX,
        )
        with open(self.folder / "client.out", "a", encoding="utf-8") as file:
            file.write(f"== {run.returncode}\n{run.stdout}\n{run.stderr}\n")
        if run.returncode != 0:
            last = (run.stdout + run.stderr).strip().splitlines()
            raise RuntimeError(f"the agent ended with {run.returncode}: {last[-1][:300] if last else 'nothing said'}")
        return run.stdout

    def turns(self) -> list[str]:
        return [turn["text"] for turn in json.loads(Path(self.environment["TURNS"]).read_text(encoding="utf-8"))]


def rows(output: str) -> list[dict]:
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def claude_code(program: str):
    def run(folder: Path, environment: dict) -> tuple[str, dict]:
        agent = Agent(folder, environment)
        environment.update(
            ANTHROPIC_BASE_URL=environment["BASE_URL"],
            ANTHROPIC_API_KEY="any-key",
            DISABLE_TELEMETRY="1",
            DISABLE_ERROR_REPORTING="1",
            DISABLE_AUTOUPDATER="1",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            CLAUDE_CODE_MAX_OUTPUT_TOKENS="4000",
        )
        session: list[str] = []
        answer: dict = {}
        for text in agent.turns():
            model = ["--model", environment["MODEL"], "--output-format", "json", "--allowedTools", "Read,Glob,Grep"]
            answer = json.loads(agent.call([program, "-p", text, *model, *session]).splitlines()[-1])
            session = ["--resume", answer["session_id"]]
        usage = answer["modelUsage"].get(environment["MODEL"], {})
        return answer["result"], {"window": usage.get("contextWindow"), "cost": answer.get("total_cost_usd")}

    return run


def codex(program: str):
    def run(folder: Path, environment: dict) -> tuple[str, dict]:
        agent = Agent(folder, environment)
        home = folder / "home" / ".codex"
        home.mkdir()
        (home / "config.toml").write_text(
            f"""model = "{environment["MODEL"]}"
model_provider = "throughline"
sandbox_mode = "read-only"
approval_policy = "never"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.throughline]
name = "Throughline"
base_url = "{environment["BASE_URL"]}"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
supports_websockets = false
""",
            encoding="utf-8",
        )
        environment.update(CODEX_HOME=str(home), OPENAI_API_KEY="any-key")
        session = ""
        answer = ""
        used: dict = {}
        for text in agent.turns():
            how = ["exec", "resume", session] if session else ["exec"]
            for row in rows(agent.call([program, *how, "--json", "--skip-git-repo-check", text])):
                session = row.get("thread_id", session)
                if row.get("type") == "item.completed" and row["item"].get("type") == "agent_message":
                    answer = row["item"]["text"]
                if row.get("type") == "turn.completed":
                    used = row.get("usage", {})
        return answer, {"usage": used}

    return run


def opencode(program: str):
    def run(folder: Path, environment: dict) -> tuple[str, dict]:
        agent = Agent(folder, environment)
        (agent.work / "opencode.json").write_text(
            json.dumps(
                {
                    "$schema": "https://opencode.ai/config.json",
                    "autoupdate": False,
                    "share": "disabled",
                    "provider": {
                        "anthropic": {"options": {"baseURL": environment["BASE_URL"], "apiKey": "any-key"}},
                    },
                    "permission": {"bash": "deny", "edit": "deny", "webfetch": "deny"},
                }
            ),
            encoding="utf-8",
        )
        environment.update(
            OPENCODE_DISABLE_AUTOUPDATE="1",
            OPENCODE_DISABLE_MODELS_FETCH="1",
            OPENCODE_DISABLE_LSP_DOWNLOAD="1",
        )
        session: list[str] = []
        answer = ""
        for text in agent.turns():
            said = ""
            model = ["-m", f"anthropic/{environment['MODEL']}"]
            for row in rows(agent.call([program, "run", "--format", "json", *model, *session, text])):
                session = ["--session", row["sessionID"]]
                if row["type"] == "text":
                    said += row["part"]["text"]
            answer = said
        return answer, {}

    return run


def clients(client, cache: Path) -> list:
    """The agents, each with the window that its own instructions need."""
    size = {"sentences": SENTENCES, "turns": 22, "window": 60_000}
    few = {**size, "turns": 14}
    # It takes long for each turn, and has short instructions.
    short = {**size, "turns": 11, "window": 36_000}
    claude = claude_code(binary(cache, "claude"))
    codex_ = codex(binary(cache, "codex"))
    opencode_ = opencode(binary(cache, "opencode"))
    return [
        client("claude-code", "claude-sonnet-5-5", None, agent=claude, **few),
        client("codex", "gpt-5.6-sol", None, path="/v1", agent=codex_, **size),
        client("opencode", "claude-sonnet-4-6", None, path="/v1", agent=opencode_, **short),
    ]
