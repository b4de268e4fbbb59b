# SPDX-License-Identifier: Apache-2.0
"""Asks two supervisors for GetInfo on fresh connections again and again, and says how long each took to answer.

    probe SOCKET PID SOCKET PID

One line of JSON for each time: seconds of the first one, those of the second one, and of the first one the seconds that
neither its loop nor this process had to wait for a processor: what it took of itself. Ends with its standard input.
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
# An answer that has not come after so long: what the loop does is looked at.
LOOK = 0.06
# An answer that takes longer is none.
BOUND = 60.0


def where(pid: int) -> str:
    """The state of the loop's thread, and where in the kernel it stands, as far as this may be seen."""
    state = " ".join(stat(pid)[:1])
    try:
        with open(f"/proc/{pid}/stack", encoding="ascii") as file:
            return " ".join([state, *(line.split()[-1].partition("+")[0] for line in file.read().splitlines()[:5])])
    except OSError:
        return state


def connect(path: str) -> socket.socket:
    """Also where the backlog is full for a moment."""
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
            # What comes is one message, in one piece.
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
