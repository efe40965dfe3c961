"""Drives a conversation through the proxy, and the dashboard through a headless Chromium (scripts/test-dashboard).

Only the standard library: chromedriver speaks HTTP.
"""

import argparse
import base64
import contextlib
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

WINDOW = 20_000
DESK = (1280, 900)
PHONE = (390, 844)
HOSTILE = "<img src=x onerror=alert(1)><script>alert('x')</script>"
TOKEN = "a-token-for-the-test-of-the-dashboard"

checks = 0


def check(is_right, what):
    global checks
    checks += 1
    if not is_right:
        raise SystemExit(f"test-dashboard: {what}")


def call(method, url, body=None, headers=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", **(headers or {})}
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


@contextlib.contextmanager
def program(arguments, pattern, log):
    """Starts a program and gives what the pattern finds in its first lines."""
    with open(log, "wb") as errors:
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            for line in process.stdout:
                found = re.search(pattern, line)
                if found:
                    yield found.group(1)
                    break
            else:
                raise SystemExit(f"test-dashboard: {arguments[0]} does not start, see {log}")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


class Client:
    """A client that keeps its history and sends all of it, as agents do."""

    def __init__(self, url, key="any"):
        self.url, self.key, self.messages = url, key, []
        self.epoch, self.session = 0, None

    def say(self, text):
        self.messages.append({"role": "user", "content": text})
        for _ in range(50):
            status, headers, answer = call(
                "POST",
                f"{self.url}/v1/messages",
                {"model": "claude-opus-4-6", "max_tokens": 1000, "messages": self.marked(), "tools": [TOOL]},
                {"x-api-key": self.key, "anthropic-version": "2023-06-01"},
            )
            check(status == 200, f"the proxy answered {status}: {answer[:300]}")
            self.epoch = int(headers.get("x-throughline-epoch") or self.epoch)
            self.session = headers.get("x-throughline-session") or self.session
            content = json.loads(answer)["content"]
            self.messages.append({"role": "assistant", "content": content})
            calls = [block for block in content if block["type"] == "tool_use"]
            if not calls:
                return
            lines = "\n".join(f"src/store/rows.rs:{n}: pub fn write_rows_{n}(&mut self) -> Result<(), Error>" for n in range(30))
            results = [{"type": "tool_result", "tool_use_id": block["id"], "content": lines} for block in calls]
            self.messages.append({"role": "user", "content": results})

    def marked(self):
        messages = [dict(message) for message in self.messages]
        last = messages[-1]
        content = last["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [dict(block) for block in content]
        blocks[-1]["cache_control"] = {"type": "ephemeral"}
        last["content"] = blocks
        return messages


TOOL = {
    "name": "read_file",
    "description": "Reads a file.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


class Browser:
    """Chromium, over the WebDriver protocol."""

    def __init__(self, driver, profile):
        self.driver = driver
        flags = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--hide-scrollbars", f"--user-data-dir={profile}",
        ]
        options = {"args": flags}
        binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if binary:
            options["binary"] = binary
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{made['sessionId']}"

    def _call(self, method, path, body=None):
        status, _, answer = call(method, self.driver + path, body)
        value = json.loads(answer)["value"]
        if status != 200:
            raise SystemExit(f"test-dashboard: {method} {path}: {value.get('message', value)[:400]}")
        return value

    def post(self, path, body=None):
        return self._call("POST", self.session + path, body or {})

    def cdp(self, command, **parameters):
        return self.post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def look(self, size, scheme):
        width, height = size
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url):
        self.post("/url", {"url": url})

    def run(self, script, *arguments):
        return self.post("/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector="body"):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def count(self, selector):
        return self.run("return document.querySelectorAll(arguments[0]).length", selector)

    def click(self, selector):
        before = self.run("return performance.timeOrigin")
        self.run("document.querySelector(arguments[0]).click()", selector)
        return before

    def submit(self, selector):
        """Clicks, and waits for the page that comes."""
        before = self.click(selector)
        for _ in range(100):
            time.sleep(0.1)
            try:
                if self.run("return document.readyState === 'complete' && performance.timeOrigin") not in (False, before):
                    return
            except SystemExit:
                pass
        raise SystemExit(f"test-dashboard: nothing comes of {selector}")

    def keys(self, text):
        actions = []
        for key in text if isinstance(text, list) else list(text):
            actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.post("/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def url(self):
        return self._call("GET", self.session + "/url")

    def errors(self):
        return [line for line in self.post("/se/log", {"type": "browser"}) if line["level"] in ("WARNING", "SEVERE")]

    def shoot(self, path, whole=True):
        shot = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        self._call("DELETE", self.session)


ARROW_LEFT = "\ue012"
ENTER = "\ue007"


def fine(browser, what):
    """No message in the console, nothing beside the page."""
    errors = browser.errors()
    check(not errors, f"{what}: the console says {errors}")
    wide = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if wide > 0:
        which = browser.run(
            "return [...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > "
            "document.documentElement.clientWidth + 1).slice(0, 5).map(e => e.outerHTML.slice(0, 160))"
        )
        check(False, f"{what}: the page is {wide} px too wide: {which}")
    check(browser.count("script") == 1 and browser.count("main img") == 0, f"{what}: something was put into the page")


def pages(session):
    home = f"/throughline/sessions/{session}"
    return {
        "sessions": "/throughline",
        "session": home,
        "memory": f"{home}/memory",
        "diff": f"{home}/memory?version=2&against=1",
        "preview": f"{home}/preview",
        "edit": f"{home}/edit",
        "messages": f"{home}/messages",
        "message": f"{home}/messages/0",
        "search": "/throughline/search?q=region",
        "missing": f"{home}x",
    }


def conversation(url):
    client = Client(url)
    client.say("Remember: the deploy region is eu-north-3. Never force-push to main.")
    turn = 0
    while client.epoch < 3:
        turn += 1
        check(turn < 200, "no three swaps in 200 turns")
        client.say(
            f"Please look at crates/store/src/module_{turn}.rs and fix the error in step {turn}. "
            + " ".join(f"value-{turn}-{word}" for word in range(70))
        )
    for _ in range(4):
        client.say("Go on with the next step.")
    other = Client(url, "other")
    other.say(f"Remember: {HOSTILE} is only text.")
    other.say("Go on.")
    return client, other


def actions(browser, url, client):
    """Everything that can be done, by forms and by keys."""
    home = f"{url}/throughline/sessions/{client.session}"
    browser.look(DESK, "light")
    # Keys: to the search, to the rows, into one, and back.
    browser.open(f"{url}/throughline")
    browser.keys("/")
    check(browser.run("return document.activeElement.id") == "find", "the key / does not lead to the search")
    browser.keys(["r", "e", "g", "i", "o", "n", ENTER])
    time.sleep(0.5)
    check("/search?q=region" in browser.url() and browser.count(".hits li") > 0, "the search finds nothing")
    browser.run("document.activeElement.blur()")
    browser.keys("u")
    time.sleep(0.5)
    browser.keys("jjk")
    check(browser.count("[data-row].at") == 1, "j and k do not go along the rows")
    browser.keys([ENTER])
    time.sleep(0.5)
    check("/throughline/sessions/" in browser.url(), "Enter does not open a row")
    # The chart says what is pointed at.
    browser.open(home)
    browser.run("document.querySelector('[data-chart]').focus()")
    browser.keys([ARROW_LEFT, ARROW_LEFT])
    check("tokens" in browser.text("[data-readout]"), "the chart says nothing of a request")
    # The page keeps itself up to date.
    before = browser.text(".now .figures")
    client.say("One more question.")
    browser.run("document.activeElement.blur()")
    for _ in range(60):
        if browser.text(".now .figures") != before:
            break
        time.sleep(0.1)
    check(browser.text(".now .figures") != before, "the page does not keep itself up to date")
    # An item leads to its message.
    browser.open(f"{home}/memory")
    browser.submit(".items .source a")
    check("/messages/" in browser.url() and browser.count(".quote") == 1, "an item does not lead to its message")
    # Pin and unpin.
    browser.open(home)
    browser.run("document.querySelector('form[action$=\"/pin\"] input').value = 'The customer is Ada Example'")
    browser.submit("form[action$='/pin'] button")
    check("Ada Example" in browser.text(".pins"), "the pin is not shown")
    # Preview, look, edit, approve.
    browser.submit("button[value=preview]")
    check("/preview" in browser.url(), f"nothing is prepared: {browser.url()} {browser.text('main')[:300]}")
    check("Ada Example" in browser.text(), f"the preview does not show the pin: {browser.text('main')[:300]}")
    version = browser.run("return document.querySelector('[action$=\"/approve\"] input').value")
    browser.submit("form[action$='/approve'] button")
    client.say("Go on.")
    seen = json.loads(call("GET", f"{url}/throughline/api/v1/sessions/{client.session}")[2])
    check(seen["detail"]["version"] == int(version), "what was approved is not what the requests begin with")
    browser.open(f"{home}/edit")
    browser.run("document.querySelector('textarea[name^=t]').value = 'A text of the operator, zebra-17'")
    browser.submit(".edit button.primary")
    check("zebra-17" in browser.text(), "the edit is not in the memory")
    # Undo, twice.
    for _ in range(2):
        browser.open(home)
        browser.submit("form[action$='/undo'] button")
        check("undone" in browser.text(".notice"), "the swap is not undone")
    browser.submit(".pins button")
    check(browser.count(".pins li") == 0, "the pin does not go")
    # Off and on.
    browser.submit("form[action$='/mode'] button")
    check("compaction off" in browser.text(".badges"), "it is not switched off")
    browser.submit("form[action$='/mode'] button")
    check("compaction off" not in browser.text(".badges"), "it is not switched on")
    fine(browser, "actions")


def without_scripts(browser, url, session):
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(f"{url}/throughline/sessions/{session}")
    source = browser._call("GET", browser.session + "/source")
    check("<polyline" in source and "Prepare and review" in source, "the page needs its script")
    browser.cdp("Emulation.setScriptExecutionDisabled", value=False)


def signing_in(arguments, folder, upstream, browser):
    token = folder / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    serve = [
        arguments.binary, "serve", "--listen", "127.0.0.1:0", "--anthropic-upstream", upstream,
        "--data", str(folder / "data-2"), "--token-file", str(token),
    ]
    with program(serve, r"listening on (http://[0-9.:]+)", folder / "serve-2.log") as url:
        status, _, _ = call("GET", f"{url}/throughline/api/v1/sessions")
        check(status == 401, f"the API answers {status} without the token")
        status, _, _ = call("GET", f"{url}/metrics", headers={"authorization": f"Bearer {TOKEN}"})
        check(status == 200, f"the metrics answer {status} with the token")
        browser.open(f"{url}/throughline")
        check("/sign-in" in browser.url(), "the sign-in page does not open")
        fine(browser, "sign-in")
        browser.shoot(arguments.out / "sign-in.png", whole=False)
        browser.run("document.querySelector('input[name=token]').value = 'wrong'")
        browser.submit("form.sign-in button")
        check("not the token" in browser.text(), "a wrong token is not refused")
        browser.errors()
        browser.run("document.querySelector('input[name=token]').value = arguments[0]", TOKEN)
        browser.submit("form.sign-in button")
        check("No session yet" in browser.text() and browser.run("return document.cookie") == "", "signing in fails")
        browser.submit(".bar form[method=post] button")
        browser.open(f"{url}/throughline")
        check("/sign-in" in browser.url(), "signing out fails")
        fine(browser, "signed out")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default="target/debug/throughline")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/dashboard"))
    parser.add_argument("--images", action="store_true")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        simulate = [arguments.binary, "simulate", "--listen", "127.0.0.1:0", "--window", str(WINDOW), "--latency", "none"]
        upstream = stack.enter_context(program(simulate, r"listening on (http://[0-9.:]+)", folder / "simulate.log"))
        serve = [
            arguments.binary, "serve", "--listen", "127.0.0.1:0", "--anthropic-upstream", upstream,
            "--window", str(WINDOW), "--updates", "code", "--data", str(folder / "data"), "--log", "json",
        ]
        url = stack.enter_context(program(serve, r"listening on (http://[0-9.:]+)", folder / "serve.log"))
        driver = stack.enter_context(
            program(["chromedriver", "--port=0"], r"successfully on port (\d+)", folder / "driver.log")
        )
        client, other = conversation(url)
        time.sleep(1)
        browser = Browser(f"http://127.0.0.1:{driver}", folder / "profile")
        stack.callback(browser.close)
        for width, size in (("desk", DESK), ("phone", PHONE)):
            for scheme in ("light", "dark"):
                browser.look(size, scheme)
                for name, path in pages(client.session).items():
                    browser.open(url + path)
                    what = f"{name}, {width}, {scheme}"
                    if name == "missing":
                        browser.errors()
                    fine(browser, what)
                    check(browser.count("h1") == 1, f"{what}: no heading")
                    browser.shoot(arguments.out / f"{name}-{width}-{scheme}.png", whole=name != "messages")
                browser.open(f"{url}/throughline/sessions/{other.session}/messages")
                check("onerror" in browser.text(), "the text is not shown")
                fine(browser, f"hostile, {width}, {scheme}")
        browser.look(DESK, "light")
        browser.open(f"{url}/throughline/sessions/{client.session}")
        for selector, least in (
            (".chart .wide .column", 20), (".chart .wide .swap", 3), (".chart .wide .level.hard", 1),
            (".chart .wide .level.soft", 1), (".chart .wide .otherwise", 2), (".chart .wide .built", 3), (".meter", 1),
        ):
            check(browser.count(selector) >= least, f"the chart has {browser.count(selector)} of {selector}")
        if arguments.images:
            images = pathlib.Path("docs/images")
            browser.look((1200, 860), "light")
            browser.open(f"{url}/throughline/sessions/{client.session}")
            browser.shoot(images / "dashboard.png", whole=False)
            browser.look(DESK, "dark")
            browser.open(f"{url}/throughline/sessions/{client.session}/memory?version=3&against=2")
            browser.shoot(images / "dashboard-memory.png", whole=False)
        without_scripts(browser, url, client.session)
        actions(browser, url, client)
        browser.open(f"{url}/throughline/sessions/{other.session}")
        browser.submit("form[action$='/delete'] button")
        check("deleted" in browser.text(".notice") and HOSTILE not in browser.text(), "the session is not deleted")
        fine(browser, "deleted")
        signing_in(arguments, folder, upstream, browser)
        log = (folder / "serve.log").read_text()
        lines = [json.loads(line) for line in log.splitlines()]
        check(any(line["fields"].get("action") == "undo" for line in lines), "the log does not say what was done")
        for word in ("eu-north-3", "Ada Example", "zebra-17", "onerror"):
            check(word not in log, f"the log has content: {word}")
    print(f"test-dashboard: {checks} checks, screenshots in {arguments.out}")


if __name__ == "__main__":
    sys.exit(main())
