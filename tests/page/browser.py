"""Control of a real browser through the DevTools protocol, for tests of the results page."""

import asyncio
import base64
import itertools
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import aiohttp
import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
]
PATIENCE_SECONDS = 120
FINDINGS = """axe.run(%s, {resultTypes: ["violations"]}).then((found) => found.violations.flatMap(
  (rule) => rule.nodes.map((node) => `${rule.id}: ${node.target}: ${node.failureSummary}`)))"""

needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine (apt-get install chromium)"
)


class Browser:
    """Page of a browser, with its errors, warnings and network requests."""

    def __init__(self, port: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._events: list[str] = []
        self.loop.run_until_complete(self._connect(port))

    async def _connect(self, port: int) -> None:
        self._session = aiohttp.ClientSession()
        async with self._session.get(f"http://127.0.0.1:{port}/json/list") as response:
            target = next(item for item in await response.json() if item["type"] == "page")
        self._socket = await self._session.ws_connect(
            target["webSocketDebuggerUrl"], max_msg_size=0
        )
        self._reader = self.loop.create_task(self._read())
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self._send(f"{domain}.enable")

    async def _read(self) -> None:
        async for message in self._socket:
            content = json.loads(message.data)
            if "id" in content:
                self._answers.pop(content["id"]).set_result(content)
            else:
                self._note(content["method"], content["params"])

    def _note(self, event: str, details: dict[str, Any]) -> None:
        self._events.append(event)
        if event == "Runtime.exceptionThrown":
            thrown = details["exceptionDetails"]
            self.problems.append(thrown.get("exception", {}).get("description", thrown["text"]))
        elif event == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning"):
            self.problems.append(json.dumps(details["args"])[:500])
        elif event == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
            self.problems.append(details["entry"]["text"])
        elif event == "Network.requestWillBeSent":
            self.requests.append(details["request"]["url"])

    async def _send(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._answers[number] = self.loop.create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        answer = await asyncio.wait_for(self._answers[number], PATIENCE_SECONDS)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a protocol command and return its result."""
        return self.loop.run_until_complete(self._send(method, **params))

    def open(self, path: Path) -> None:
        """Open a local file and wait until it is loaded."""
        self._events.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.evaluate("document.readyState") != "complete":
            assert time.monotonic() < deadline, "the page did not load"
            self.loop.run_until_complete(asyncio.sleep(0.1))

    def evaluate(self, expression: str) -> Any:
        """Return the awaited value of a JavaScript expression; exceptions fail the test."""
        result = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait_for(self, selector: str) -> None:
        """Wait until an element matches the selector."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.evaluate(f"Boolean(document.querySelector({json.dumps(selector)}))"):
            assert time.monotonic() < deadline, f"no {selector}"
            self.loop.run_until_complete(asyncio.sleep(0.05))

    def unfold(self) -> None:
        """Open all collapsed elements, and remove all but a few claims of each verdict."""
        self.evaluate(
            "document.querySelectorAll('.claim:nth-of-type(n+5)').forEach((e) => e.remove())"
        )
        self.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")

    def findings(self, selector: str = "html") -> list[str]:
        """Return axe-core's violations in an element: rule, location and remedy."""
        # Only the script, because the package would start another browser.
        axe = files("axe_playwright_python") / "axe.min.js"
        self.evaluate(axe.read_text(encoding="utf-8") + "; 0")
        violations: list[str] = self.evaluate(FINDINGS % json.dumps(selector))
        return violations

    def press(self, key: str, *, code: int, text: str = "") -> None:
        """Press and release a key."""
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.send(
            "Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {})
        )
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def choose(self, selector: str, value: str) -> None:
        """Set the value of an input or select element, and send its events."""
        self.evaluate(
            f"(() => {{ const chosen = document.querySelector({json.dumps(selector)});"
            f" chosen.value = {json.dumps(value)};"
            " for (const event of ['input', 'change'])"
            " chosen.dispatchEvent(new Event(event, {bubbles: true})); })()"
        )

    def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        """Resize the window."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )

    def prefer(self, theme: Literal["light", "dark"], *, media: str = "screen") -> None:
        """Emulate a preferred theme, and screen or print media."""
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.send("Emulation.setEmulatedMedia", features=features, media=media)

    def screenshot(self, path: Path) -> None:
        """Save a screenshot of the window as PNG."""
        data = self.send("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        """Close the connection to the page."""

        async def leave() -> None:
            await self._socket.close()
            await self._reader
            await self._session.close()

        self.loop.run_until_complete(leave())
        self.loop.close()


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Context manager that runs a browser with a new profile in a folder."""
    assert CHROMIUM
    profile = folder / "profile"
    with (folder / "browser.log").open("wb") as log:
        process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"], stdout=log, stderr=log
        )
        try:
            yield_to = Browser(_port(profile, process))
            try:
                yield yield_to
            finally:
                yield_to.close()
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _port(profile: Path, process: subprocess.Popen[bytes]) -> int:
    """Wait for the port on which the browser listens, and return it."""
    port_file = profile / "DevToolsActivePort"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if port_file.is_file() and (lines := port_file.read_text().splitlines()):
            return int(lines[0])
        assert process.poll() is None, "the browser ended"
        time.sleep(0.1)
    raise AssertionError("the browser did not start")
