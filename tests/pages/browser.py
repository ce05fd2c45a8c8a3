#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens a page in headless Chromium through its debugging pipe: messages of the console, values of expressions, pictures."""
import base64
import fcntl
import itertools
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

PATIENCE = 120  # seconds without a word from Chromium until it counts as hung


def program():
    return next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


class Browser:
    """One tab. The pipe carries JSON that ends with a NUL byte."""

    def __init__(self, width: int = 1000, height: int = 900, dark: bool = False):
        self.profile = tempfile.mkdtemp(prefix="fabricast-chromium-")
        def high(pair):  # numbers above those that Chromium expects
            moved = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 20) for one in pair]
            for one in pair:
                os.close(one)
            return moved
        to_read, self.to_write = high(os.pipe())
        self.from_read, from_write = high(os.pipe())

        def attach():
            os.dup2(to_read, 3)
            os.dup2(from_write, 4)
        self.process = subprocess.Popen([program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={self.profile}", "--remote-debugging-pipe",
                                         f"--window-size={width},{height}", *(["--force-dark-mode"] if dark else []), "about:blank"], preexec_fn=attach, close_fds=False, env={**os.environ, "TMPDIR": self.profile},
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.numbers, self.rest, self.events = itertools.count(1), b"", []
        target = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def receive(self) -> dict:
        while b"\0" not in self.rest:
            if not select.select([self.from_read], [], [], PATIENCE)[0]:
                raise RuntimeError(f"Chromium says nothing for {PATIENCE} s")
            part = os.read(self.from_read, 1 << 16)
            if not part:
                raise RuntimeError("Chromium ended")
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method: str, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        os.write(self.to_write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while True:
            if time.monotonic() > end:
                raise RuntimeError(f"{method}: no answer after {PATIENCE} s")
            answer = self.receive()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path: pathlib.Path):
        self.events = []
        self.call("Page.navigate", url=path.resolve().as_uri())
        end = time.monotonic() + PATIENCE
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            if time.monotonic() > end:
                raise RuntimeError(f"{path} is not loaded after {PATIENCE} s")
            self.events.append(self.receive())

    def value(self, expression: str):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def complaints(self) -> list:
        """Errors of the console and scripts, and everything fetched beside the file itself."""
        out = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                out.append(parameters["exceptionDetails"].get("exception", {}).get("description", "exception"))
            if method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
                out.append(str(parameters["args"]))
            if method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                out.append(parameters["entry"]["text"])
            if method == "Network.requestWillBeSent" and not parameters["request"]["url"].startswith(("file:", "data:")):
                out.append("fetches " + parameters["request"]["url"])
        return out

    def resize(self, width: int, height: int, dark: bool = False, media: str = ""):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, path: pathlib.Path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self):
        self.process.kill()
        self.process.wait(timeout=PATIENCE)
        for _ in range(50):  # its children write until they notice
            shutil.rmtree(self.profile, ignore_errors=True)
            if not os.path.exists(self.profile):
                break
            time.sleep(0.1)
