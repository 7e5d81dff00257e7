"""A small WebDriver client: headless Chromium through Debian's chromedriver, over HTTP."""

import base64
import http.client
import json
import re
import shutil
import subprocess
import tempfile
import time

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of a reference, from the W3C's standard
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Shift": "\ue008", "Alt": "\ue00a",
        "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}


def missing():
    """What has to be installed, or None."""
    lacking = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    return f"{' and '.join(lacking)} not installed (make test-clients does)" if lacking else None


class Failed(Exception):
    pass


class Browser:
    def __init__(self, width=1280, height=800):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True)
        for line in self.process.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                self.port = int(found.group(1))
                break
        options = {
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--no-first-run", "--disable-background-networking",
                     f"--user-data-dir={self.profile.name}", f"--window-size={width},{height}"]}
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "timeouts": {"script": 500000}, "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = f"/session/{answer['sessionId']}"

    def close(self):
        try:
            self._call("DELETE", self.session)
        finally:
            self.process.terminate()
            self.process.wait(30)
            self.process.stdout.close()
            self.profile.cleanup()

    def _call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        text = json.dumps(body if body is not None else {}) if method == "POST" else None
        connection.request(method, path, text, {"Content-Type": "application/json"})
        value = json.loads(connection.getresponse().read())["value"]
        connection.close()
        if isinstance(value, dict) and "error" in value:
            raise Failed(f"{value['error']}: {value['message'].splitlines()[0]}")
        return value

    def _do(self, path, body=None):
        return self._call("POST", self.session + path, body)

    def open(self, url):
        self._do("/url", {"url": url})

    def run(self, script, *arguments):
        """What a function with this body returns in the page; it may be asynchronous."""
        wrapped = ("const done = arguments[arguments.length - 1];"
                   f"(async function() {{ {script} }}).apply(null, arguments).then("
                   "value => done({value}), error => done({error: String(error)}));")
        answer = self._do("/execute/async", {"script": wrapped, "args": list(arguments)})
        if "error" in answer:
            raise Failed(answer["error"])
        return answer.get("value")

    def find(self, css):
        return self._do("/element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css):
        self._do(f"/element/{self.find(css)}/click")

    def type(self, css, text):
        self._do(f"/element/{self.find(css)}/value", {"text": text})

    def fill(self, css, text):
        self._do(f"/element/{self.find(css)}/clear")
        self.type(css, text)

    def press(self, *keys):
        """Keys held together, given to whatever has the focus."""
        codes = [KEYS.get(key, key) for key in keys]
        actions = ([{"type": "keyDown", "value": code} for code in codes]
                   + [{"type": "keyUp", "value": code} for code in reversed(codes)])
        self._do("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def text(self, css):
        """The visible text; empty if nothing matches."""
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", css)

    def count(self, css):
        return self.run("return document.querySelectorAll(arguments[0]).length", css)

    def visible(self, css):
        return self.run("return document.querySelector(arguments[0])?.checkVisibility() ?? false",
                        css)

    def wait(self, condition, what, seconds=60):
        """What `condition()` returns once that is true."""
        end = time.monotonic() + seconds
        while not (value := condition()):
            if time.monotonic() > end:
                raise Failed(f"expected {what} within {seconds} s")
            time.sleep(0.05)
        return value

    def resize(self, width, height):
        """The size of the page itself, which a window of the desktop could not be."""
        self._do("/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}})

    def prefer(self, scheme):
        self._do("/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]}})

    def complaints(self):
        """What the page wrote to the console as errors and warnings since the last call."""
        log = self._do("/se/log", {"type": "browser"})
        return [entry["message"] for entry in log if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, path):
        data = self._call("GET", self.session + "/screenshot")
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
