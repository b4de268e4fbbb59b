# SPDX-License-Identifier: Apache-2.0
"""uploader.py OUTBOX URL: sends the files of a folder to a web server (PUT URL/NAME) and removes what has arrived.

As an app of Torpor it finishes in the background what it has begun, in a background task, and lets go when its time is
almost up: what is left is sent when it runs again. How many it has sent is its state, which outlives an eviction.
"""

import argparse
import asyncio
import json
import logging
import os
import pathlib
import sys
import urllib.error
import urllib.request

try:
    import torpor
except ImportError:  # Not installed: from Torpor's sources, or from where the package torpor has it.
    sys.path += [str(pathlib.Path(__file__).resolve().parent / "../../Clients/python"), "/usr/share/torpor/clients/python"]
    import torpor
import torpor.aio

_log = logging.getLogger("uploader")


class Uploader(torpor.Delegate):
    def __init__(self, outbox: pathlib.Path, url: str) -> None:
        self.outbox = outbox
        self.url = url
        self.sent = 0
        #: Set while the app may begin something new.
        self.may_begin = asyncio.Event()
        self.ends = asyncio.Event()

    # What it hears.

    def restore_state(self, message: torpor.Message) -> None:
        self.sent = json.loads(message.read_state())["sent"]

    def did_become_active(self, message: torpor.Message) -> None:
        self.may_begin.set()

    async def did_enter_background(self, message: torpor.Message) -> None:
        self.may_begin.clear()
        await self.save(message.app)

    async def will_terminate(self, message: torpor.Message) -> None:
        await self.save(message.app)
        self.ends.set()

    # What it does.

    async def save(self, app: torpor.aio.App) -> None:
        if app.supervised:
            await app.save_state(json.dumps({"sent": self.sent}).encode())

    async def run(self, app: torpor.aio.App) -> None:
        while True:
            await self.may_begin.wait()
            files = self.files()
            if not files:
                await asyncio.sleep(0.2)
                continue
            try:
                async with app.background_task("upload"):
                    await self.send(files)
            except torpor.TaskExpired:
                _log.info("The time is up; %d files wait.", len(self.files()))
                self.may_begin.clear()
            except OSError as error:
                _log.warning("%s; it is tried again in a second.", error)
                await asyncio.sleep(1)

    def files(self) -> "list[pathlib.Path]":
        return sorted(path for path in self.outbox.iterdir() if path.is_file() and not path.name.startswith("."))

    async def send(self, files: "list[pathlib.Path]") -> None:
        loop = asyncio.get_running_loop()
        for path in files:
            # When the time is up, what is being sent may arrive and stay: it is sent once more then.
            await loop.run_in_executor(None, self.put, path)
            os.unlink(path)
            self.sent += 1
            torpor.notify(f"STATUS={self.sent} files sent")

    def put(self, path: pathlib.Path) -> None:
        request = urllib.request.Request(f"{self.url}/{path.name}", data=path.read_bytes(), method="PUT")
        with urllib.request.urlopen(request, timeout=10):
            pass


async def main() -> None:
    parser = argparse.ArgumentParser(description="Sends the files of a folder to a web server.")
    parser.add_argument("outbox", type=pathlib.Path)
    parser.add_argument("url")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    uploader = Uploader(arguments.outbox, arguments.url)
    async with torpor.aio.App(uploader) as app:
        work = asyncio.ensure_future(uploader.run(app))
        ends = asyncio.ensure_future(uploader.ends.wait())
        await asyncio.wait({work, ends}, return_when=asyncio.FIRST_COMPLETED)
        for task in (work, ends):
            task.cancel()
        await asyncio.gather(work, ends, return_exceptions=True)


asyncio.run(main())
