# Copyright the onnx-addnorm authors
# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, over its DevTools pipe: open a page, run a script in it, see what it loads.

    with Chromium() as browser:
        page = browser.open(path, width=380, scheme="dark")
        page.evaluate("document.title")
        page.complaints, page.requests
"""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 30  # without an answer
HEIGHT = 900


def find():
    """The path of a browser, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Chromium:
    def __enter__(self):
        self._profile = tempfile.TemporaryDirectory()
        its_input, self._input = os.pipe()
        self._output, its_output = os.pipe()

        def take_pipes():  # the browser expects them as 3 and 4
            ends = [os.dup(its_input), os.dup(its_output)]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        # Root has no sandbox; the pages are our own.
        self._process = subprocess.Popen(
            [find(), "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--no-first-run", "--hide-scrollbars", f"--user-data-dir={self._profile.name}", "about:blank"],
            preexec_fn=take_pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(its_input)
        os.close(its_output)
        self._bytes = b""
        self._last = 0
        self.events = []
        return self

    def __exit__(self, *_):
        self.call("Browser.close")
        self._process.wait(timeout=SECONDS)
        os.close(self._input)
        os.close(self._output)
        shutil.rmtree(self._profile.name, ignore_errors=True)

    def _receive(self):
        while b"\0" not in self._bytes:
            if not select.select([self._output], [], [], SECONDS)[0]:
                raise TimeoutError("Chromium does not answer")
            more = os.read(self._output, 1 << 20)
            if not more:
                raise ConnectionError("Chromium is gone")
            self._bytes += more
        message, self._bytes = self._bytes.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **params):
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._input, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") != self._last:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def wait_for(self, method, session):
        def is_it(event):
            return event.get("method") == method and event.get("sessionId") == session

        while not any(map(is_it, self.events)):
            self.events.append(self._receive())

    def open(self, path, width, scheme):
        return Page(self, path, width, scheme)


class Page:
    """A loaded page; its evaluations see it as it is on a screen so wide, in "light" or "dark"."""

    def __init__(self, browser, path, width, scheme):
        self._browser = browser
        self._url = pathlib.Path(path).as_uri()
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self._call(f"{domain}.enable")
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=HEIGHT, deviceScaleFactor=1, mobile=False)
        self._call("Page.navigate", url=self._url)
        browser.wait_for("Page.loadEventFired", self._session)

    def _call(self, method, **params):
        return self._browser.call(method, self._session, **params)

    def _events(self, *methods):
        return [event["params"] for event in self._browser.events
                if event.get("sessionId") == self._session and event["method"] in methods]

    @property
    def complaints(self):
        """What a console would show."""
        return self._events("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")

    @property
    def requests(self):
        """What was asked for besides the page itself."""
        urls = [event["request"]["url"] for event in self._events("Network.requestWillBeSent")]
        return [url for url in urls if url != self._url]

    def evaluate(self, script):
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def screenshot(self, path):
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        shot = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                          clip=dict(x=0, y=0, width=size["width"], height=size["height"], scale=1))
        pathlib.Path(path).write_bytes(base64.b64decode(shot["data"]))
