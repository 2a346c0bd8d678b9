"""A headless Chromium, driven over a pipe by the DevTools protocol: nothing but the standard library is needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--remote-debugging-pipe", "about:blank"),
)


class Browser:
    """One page of a Chromium process.

    Attributes:
        log: errors since the page was opened.
        requests: addresses that were fetched since then.
    """

    def __init__(self, program: str, home: Path) -> None:
        to_browser, from_us = os.pipe()
        to_us, from_browser = os.pipe()

        def place_pipes() -> None:
            # Chromium reads file descriptor 3 and writes 4
            high = os.dup(to_browser), os.dup(from_browser)
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        command = [program, f"--user-data-dir={home}", *OPTIONS]
        silent: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, preexec_fn=place_pipes, close_fds=False, **silent)
        for end in (to_browser, from_browser):
            os.close(end)
        self._in, self._out = os.fdopen(from_us, "wb"), os.fdopen(to_us, "rb")
        self._number = 0
        self._session: dict[str, str] = {}
        self.log: list[str] = []
        self.requests: list[str] = []
        target = next(one for one in self._send("Target.getTargets")["targetInfos"] if one["type"] == "page")
        attached = self._send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._send(f"{domain}.enable")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._in.close()
        self._out.close()

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters, **self._session}
        self._in.write(json.dumps(message).encode() + b"\0")
        self._in.flush()
        while (answer := self._read()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        return answer["result"]  # type: ignore[no-any-return]

    def _read(self) -> dict[str, Any]:
        found = bytearray()
        while (byte := self._out.read(1)) != b"\0":
            assert byte, "Chromium ended"
            found += byte
        message: dict[str, Any] = json.loads(found)
        match message.get("method"):
            case "Runtime.exceptionThrown" | "Log.entryAdded":
                self.log.append(str(message["params"]))
            case "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
        return message

    def open(self, url: str, *, dark: bool = False, width: int = 1280) -> None:
        """Load a page and wait until its scripts have run."""
        self.requests.clear()
        self.log.clear()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._send("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self._send("Emulation.setDeviceMetricsOverride", **size)
        self._send("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")
        self.wait("document.querySelector('script.rows, .panel[open] .charts > script') === null")

    def wait(self, condition: str, seconds: float = 20.0) -> None:
        """Until a JavaScript expression is true."""
        until = time.monotonic() + seconds
        while self.evaluate(condition) is not True:
            assert time.monotonic() < until, f"never: {condition}"
            time.sleep(0.05)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        found = self._send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def click(self, selector: str) -> None:
        """A mouse click in the middle of an element."""
        x, y = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """A key, by its DevTools name, on the element with the focus."""
        for kind in ("keyDown", "keyUp"):
            self._send("Input.dispatchKeyEvent", type=kind, key=key, code=key, text="\r" if key == "Enter" else "")

    def choose(self, axis: str, *values: str) -> None:
        """Tick these boxes of a filter, and no others."""
        self.evaluate(
            f"(() => {{ const e = document.querySelector('.choice[data-axis={axis}]');"
            f" for (const box of e.querySelectorAll('input')) box.checked = {json.dumps(values)}.includes(box.value);"
            " e.dispatchEvent(new Event('change')); })()"
        )

    def write(self, selector: str, text: str) -> None:
        """Into a field."""
        self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(text)};"
            " e.dispatchEvent(new Event('input')); })()"
        )

    def point(self, x: float, y: float) -> None:
        """Move the mouse there."""
        self._send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Skips where there is no Chromium."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no Chromium here (Debian: apt-get install chromium); the page was not seen in a browser")
    found = Browser(program, tmp_path_factory.mktemp("chromium"))
    yield found
    found.close()
