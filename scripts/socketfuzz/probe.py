# SPDX-License-Identifier: Apache-2.0
"""Repeatedly calls GetInfo of two supervisors on new connections, and prints how long each took to answer.

    probe SOCKET PID SOCKET PID

It prints a JSON line each time: the seconds of the first one and of the second one, and the seconds of the first one
without the time that its loop or this process waited for a CPU. It ends with its standard input.
"""

import json
import os
import select
import socket
import sys
import time

from .proc import schedule, stat, waited

CALL = b'{"method":"org.varlink.service.GetInfo"}\0'
PAUSE = 0.03
# After this many seconds without an answer, the state of the loop is inspected.
LOOK = 0.06
# After this many seconds, the call has failed.
BOUND = 60.0


def where(pid: int) -> str:
    """The state of the loop's thread, and its position in the kernel if readable."""
    state = " ".join(stat(pid)[:1])
    try:
        with open(f"/proc/{pid}/stack", encoding="ascii") as file:
            return " ".join([state, *(line.split()[-1].partition("+")[0] for line in file.read().splitlines()[:5])])
    except OSError:
        return state


def connect(path: str) -> socket.socket:
    """Connects, and retries while the backlog is full."""
    until = time.monotonic() + BOUND
    while True:
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            stream.connect(path)
            return stream
        except OSError:
            stream.close()
            if time.monotonic() > until:
                raise
            time.sleep(0.002)


def measure(paths: list[str], pid: int) -> dict[str, object]:
    ran, *before = *schedule(pid), waited(os.getpid())
    began = time.monotonic()
    seconds = [BOUND, BOUND]
    own = BOUND
    streams: dict[socket.socket, int] = {}
    fault = None
    for index, path in enumerate(paths):
        try:
            stream = connect(path)
            streams[stream] = index
            stream.send(CALL)
        except OSError as error:
            fault = f"{path}: {error}"
    stood: list[str] = []
    while streams and time.monotonic() - began < BOUND:
        ready = select.select(list(streams), [], [], LOOK)[0]
        if not ready and len(stood) < 8:
            stood.append(where(pid))
        for stream in ready:
            # The answer is one message in one piece.
            try:
                data = stream.recv(1 << 16)
            except OSError as error:
                data = str(error).encode()
            index = streams.pop(stream)
            seconds[index] = time.monotonic() - began
            if index == 0:
                own = max(0.0, seconds[0] - (waited(pid) - before[0]) - (waited(os.getpid()) - before[1]))
            if not data.endswith(b"\0"):
                fault = f"{paths[index]} closed the connection: {data[:200]!r}"
            stream.close()
    ran = schedule(pid)[0] - ran
    return {"seconds": seconds[0], "control": seconds[1], "own": own, "ran": ran, "stood": stood, "fault": fault}


def main() -> None:
    first, pid, second, _ = sys.argv[1:5]
    while not select.select([sys.stdin], [], [], PAUSE)[0]:
        print(json.dumps(measure([first, second], int(pid))), flush=True)


if __name__ == "__main__":
    main()
