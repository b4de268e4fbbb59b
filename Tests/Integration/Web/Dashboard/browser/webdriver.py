# SPDX-License-Identifier: Apache-2.0
"""A client of the WebDriver protocol (https://www.w3.org/TR/webdriver2/), in as much as the tests need: chromedriver drives
Debian's Chromium, and nothing but Python's own library speaks to it."""
import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request


class Problem(Exception):
    """Something did not come, or the driver refused it."""


class Browser:
    """A headless Chromium with a folder of its own."""

    def __init__(self, width=1280, height=860, scheme="light"):
        driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
        if not driver or not chromium:
            raise Problem("there is no chromium here: install the packages chromium and chromium-driver")
        self.folder = tempfile.mkdtemp(prefix="tw-")
        self.process = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env=dict(os.environ, HOME=self.folder, TMPDIR=self.folder))
        try:
            self.base = self._address()
            options = {
                "binary": chromium,
                "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
                         "--hide-scrollbars", "--lang=en", "--disable-background-networking", f"--user-data-dir={self.folder}/profile",
                         f"--window-size={width},{height}"],
            }
            capabilities = {"browserName": "chrome", "goog:chromeOptions": options,
                            "goog:loggingPrefs": {"browser": "ALL"}}
            self.session = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})["sessionId"]
            self.size(width, height)
            self.scheme(scheme)
        except BaseException:
            self.end()
            raise

    def _address(self):
        for line in self.process.stdout:
            if match := re.search(r"started successfully on port (\d+)", line):
                return f"http://127.0.0.1:{match.group(1)}"
        raise Problem("chromedriver did not start")

    def _ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=40) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise Problem(json.load(error)["value"]["message"].split("\n")[0]) from None

    def _do(self, path, body=None, method="POST"):
        return self._ask(method, f"/session/{self.session}{path}", {} if body is None and method == "POST" else body)

    def end(self):
        """Ends driver and browser; the folder goes."""
        try:
            if hasattr(self, "session"):
                self._do("", method="DELETE")
        except (Problem, OSError):
            pass
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()
        for _ in range(50):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not os.path.exists(self.folder):
                break
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def go(self, url):
        self._do("/url", {"url": url})

    def run(self, script, *arguments):
        """Runs a function body in the page; what it returns, or its promise becomes."""
        return self._do("/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, *arguments, what=None, seconds=10):
        """Waits until a function body gives something true, and gives it."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(script, *arguments)
            if value:
                return value
            if time.monotonic() > end:
                raise Problem(f"in {seconds} s it did not come to be that {what or script}")
            time.sleep(0.03)

    def find(self, css):
        return self._do("/element", {"using": "css selector", "value": css})["element-6066-11e4-a52e-4f735466cecf"]

    def click(self, css):
        """As a person does: it must be there, and nothing over it but a toast, which goes by itself."""
        end = time.monotonic() + 20
        while True:
            try:
                return self._do(f"/element/{self.find(css)}/click")
            except Problem as problem:
                is_covered = "click intercepted" in str(problem) and 'class="toast' in str(problem)
                if not is_covered or time.monotonic() > end:
                    raise
            time.sleep(0.1)

    def type(self, text):
        """Keys, to whatever is focused."""
        keys = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self._do("/actions", {"actions": [{"type": "key", "id": "keys", "actions": keys}]})

    def hover(self, css, x=0, y=0):
        origin = {"element-6066-11e4-a52e-4f735466cecf": self.find(css)}
        move = {"type": "pointerMove", "duration": 0, "x": x, "y": y, "origin": origin}
        self._do("/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})

    def devtools(self, command, parameters):
        return self._do("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def size(self, width, height, scale=1):
        """The page's size, not the window's."""
        self.devtools("Emulation.setDeviceMetricsOverride",
                      {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False})

    def scheme(self, scheme):
        """Dark or light, as the system would say."""
        self.devtools("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]})

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.devtools("Page.captureScreenshot", {"format": "png"})["data"]))

    def console(self):
        """What the console has said since it was asked last."""
        return [entry["level"] + " " + entry["message"] for entry in self._do("/se/log", {"type": "browser"})]
