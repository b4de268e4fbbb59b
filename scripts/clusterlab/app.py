# SPDX-License-Identifier: Apache-2.0
"""The app of the lab: app.py NAME FOLDER [--plain] [--load SECONDS] [--every SECONDS]

It says in FOLDER/NAME, which all nodes share, on which node it is, and what it does at which time of the monotonic
clock, which all nodes share too: `load` while it starts, `work` while it may work, `idle` while it runs and may not. A
plain app knows no lifecycle: it works as soon as it has started.
"""
import argparse
import os
import sys
import threading
import time

sys.path.append("/usr/share/torpor/clients/python")
parser = argparse.ArgumentParser()
parser.add_argument("name")
parser.add_argument("folder")
parser.add_argument("--plain", action="store_true")
parser.add_argument("--load", type=float, default=0)
parser.add_argument("--every", type=float, default=0.005)
options = parser.parse_args()
# Numbers of processes are given again after a boot.
node, pid = os.uname().nodename, f"{os.getpid()}.{time.monotonic_ns()}"
shared = os.open(f"{options.folder}/{options.name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def say(what: str) -> None:
    os.write(shared, f"{node} {pid} {what} {time.monotonic_ns()}\n".encode())


end = time.monotonic() + options.load
while True:
    say("load")
    if time.monotonic() >= end:
        break
    time.sleep(options.every)

if options.plain:
    while True:
        say("work")
        time.sleep(options.every)

import torpor  # noqa: E402

working = False
lock = threading.Lock()


class App(torpor.Delegate):
    """Works while it is active."""

    def change(self, now: bool) -> None:
        global working
        with lock:
            working = now
            say("work" if now else "idle")

    def did_become_active(self, message: torpor.Message) -> None:
        self.change(True)

    def will_resign_active(self, message: torpor.Message) -> None:
        self.change(False)

    def will_terminate(self, message: torpor.Message) -> None:
        self.change(False)
        os._exit(0)


with torpor.App(App()):
    while True:
        with lock:
            say("work" if working else "idle")
        time.sleep(options.every)
