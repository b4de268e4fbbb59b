# SPDX-License-Identifier: Apache-2.0
"""Runs as an app, and attacks its own two sockets when scripts/fuzz-sockets says so, with its seed."""

import contextlib
import json
import os
import random
import signal
import socket
import sys
import time
from collections import deque
from typing import Any

from . import interface
from .client import Fault, StreamFuzzer
from .messages import Hints, Maker
from .notify import NotifyFuzzer

SAID = 30


def describe(path: str) -> list[interface.Interface]:
    """The interface descriptions of the service at a socket."""
    found = []
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(60)
        stream.connect(path)
        for name in [None, "org.varlink.service"]:
            if name is None:
                names = ask(stream, "org.varlink.service.GetInfo", {})["interfaces"]
        for name in names:
            text = ask(stream, "org.varlink.service.GetInterfaceDescription", {"interface": name})["description"]
            found.append(interface.parse(text))
    return found


def ask(stream: socket.socket, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """One call with one reply."""
    stream.sendall(json.dumps({"method": method, "parameters": parameters}).encode() + b"\0")
    data = b""
    while not data.endswith(b"\0"):
        part = stream.recv(1 << 16)
        if not part:
            raise ConnectionError(f"no reply to {method}")
        data += part
    reply = json.loads(data[:-1])
    if "error" in reply:
        raise Fault(f"{method} {parameters}: {reply['error']} {reply.get('parameters')}")
    found: dict[str, Any] = reply.get("parameters", {})
    return found


def prepare_folder(folder: str) -> None:
    """Files that an app may pass to its supervisor by name, and some that it may not."""
    with contextlib.suppress(OSError):
        for name, size in (("state", 100), ("large", 9 << 20)):
            with open(os.path.join(folder, name), "wb") as file:
                file.truncate(size)
        os.symlink("/etc/shadow", os.path.join(folder, "link"))
        os.mkfifo(os.path.join(folder, "fifo"))
        os.mkdir(os.path.join(folder, "folder"))
        os.link(os.path.join(folder, "state"), os.path.join(folder, "second"))


def attack(job: dict[str, Any]) -> dict[str, Any]:
    """Runs one round; returns the results."""
    said: deque[str] = deque(maxlen=SAID)
    # A hang in this process is no fault of the supervisor.
    until = time.monotonic() + job["seconds"]
    answer: dict[str, Any] = {"steps": 0, "calls": 0, "replies": 0, "done": [], "fault": None}
    if job["kind"] == "notify":
        notify = NotifyFuzzer(os.environ["NOTIFY_SOCKET"], random.Random(job["seed"]), said.append, job["pids"])
        for _ in range(job["steps"]):
            if time.monotonic() > until:
                break
            notify.step()
        notify.forget()
        notify.close()
        answer["steps"] = notify.steps
        # Make sure that the app counts as started, whatever was pending.
        notify.send(b"READY=1")
    else:
        path = os.environ["TORPOR_APP_SOCKET"]
        hints = Hints(**job["hints"])
        fuzzer = None
        try:
            maker = Maker(random.Random(job["seed"]), describe(path), hints)
            fuzzer = StreamFuzzer(path, maker.chance, maker, said.append, [None], [])
            for _ in range(job["steps"]):
                if time.monotonic() > until:
                    break
                fuzzer.step()
            fuzzer.settle(60)
        except Fault as fault:
            answer["fault"] = str(fault)
        except OSError as error:
            said.append(f"{error}")
        if fuzzer is not None:
            answer.update(steps=fuzzer.steps, calls=fuzzer.calls, replies=fuzzer.replies, done=sorted(fuzzer.done))
    answer["said"] = list(said)
    return answer


def main() -> None:
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    prepare_folder(os.environ["TORPOR_STATE_DIRECTORY"])
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        out.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
    driver = socket.socket(socket.AF_UNIX)
    driver.connect(sys.argv[1])
    lines = driver.makefile("rw", encoding="utf-8")
    lines.write(json.dumps({"app": os.environ["TORPOR_APP"], "pid": os.getpid()}) + "\n")
    lines.flush()
    for line in lines:
        lines.write(json.dumps(attack(json.loads(line))) + "\n")
        lines.flush()


if __name__ == "__main__":
    main()
