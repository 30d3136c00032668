# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium by its debugging protocol over a pipe: nothing but the standard library."""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class PageError(Exception):
    pass


def find_chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One Chromium with one page. `requests` and `errors` are what that page did so far."""

    def __init__(self, width=1400, height=900):
        self._profile = tempfile.TemporaryDirectory(prefix="pyrometer-chromium-")
        command_read, self._commands = os.pipe()
        self._replies, reply_write = os.pipe()

        def hand_over():  # the protocol is on descriptors 3 and 4
            low = [os.dup2(fd, fd + 100) for fd in (command_read, reply_write)]
            os.dup2(low[0], 3)
            os.dup2(low[1], 4)

        self._process = subprocess.Popen(
            [find_chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe",
             f"--user-data-dir={self._profile.name}", f"--window-size={width},{height}",
             "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=hand_over)
        os.close(command_read)
        os.close(reply_write)
        self._buffer = b""
        self._last_id = 0
        self._session = None
        self.requests = []
        self.errors = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target,
                                  flatten=True)["sessionId"]
        for domain in ("Network", "Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        try:
            self._session = None
            self.call("Browser.close")
            self._process.wait(timeout=20)
        except (PageError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._commands)
        os.close(self._replies)
        # Its last children may still be writing.
        shutil.rmtree(self._profile.name, ignore_errors=True)
        self._profile.cleanup()

    def call(self, method, timeout=120, **params):
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            reply = self._next(deadline, method)
            if reply.get("id") != message["id"]:
                self._note(reply)
            elif "error" in reply:
                raise PageError(f"{method}: {reply['error']}")
            else:
                return reply["result"]

    def evaluate(self, expression):
        """The value of a JavaScript expression; a promise is awaited."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise PageError(f"{expression}: {details.get('exception', details)}")
        return result["result"].get("value")

    def wait_for(self, expression, timeout=60):
        """Polls until the expression is true and returns its value."""
        deadline = time.monotonic() + timeout
        while not (value := self.evaluate(expression)):
            if time.monotonic() > deadline:
                raise PageError(f"not within {timeout} s: {expression}")
            self.evaluate("new Promise((done) => setTimeout(done, 20))")
        return value

    def open(self, url):
        self.requests.clear()
        self.errors.clear()
        self.call("Page.navigate", url=url)

    def _next(self, deadline, what):
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._replies], [], [], left)[0]:
                raise PageError(f"no answer to {what}")
            data = os.read(self._replies, 1 << 20)
            if not data:
                raise PageError(f"the browser ended during {what}")
            self._buffer += data
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, event):
        params = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"]["text"])
        elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
