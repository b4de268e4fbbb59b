# SPDX-License-Identifier: Apache-2.0
"""Sends datagrams to the notify socket of its app: every key, wrong values, descriptors of all kinds."""

import array
import contextlib
import os
import random
import select
import socket
import tempfile
from collections.abc import Callable

FLAGS = ("READY", "RELOADING", "STOPPING", "BARRIER", "FDSTORE", "FDSTOREREMOVE", "X_TORPOR_SNAPSHOT", "WATCHDOG")
NUMBERS = ("MONOTONIC_USEC", "ERRNO", "EXIT_STATUS", "MAINPID", "WATCHDOG_USEC", "EXTEND_TIMEOUT_USEC")
TEXTS = (
    "STATUS", "BUSERROR", "VARLINKERROR", "FDNAME", "X_TORPOR_TASK_BEGIN", "X_TORPOR_TASK_END", "X_TORPOR_DONE", "X_OTHER",
    "NOTIFYACCESS", "FDPOLL",
)  # fmt: skip
MESSAGES = ("didEnterBackground", "willTerminate", "didBecomeActive", "resumed", "nothing")
MOST_DESCRIPTORS = 253


class NotifyFuzzer:
    """Random steps on NOTIFY_SOCKET. `pids`: processes that do not belong to the app."""

    def __init__(self, path: str, chance: random.Random, note: Callable[[str], None], pids: list[int]):
        self.path = path
        self.chance = chance
        self.note = note
        self.pids = pids
        self.steps = 0
        # A descriptor that is stored repeatedly.
        self.kept = os.memfd_create("kept")
        # Names of stored descriptors.
        self.names = {b"stored"}

    def close(self) -> None:
        os.close(self.kept)

    def text(self) -> bytes:
        chance = self.chance
        return chance.choice([
            b"", b"1", b"0", b"true", b"trigger", b"upload", b"stored", b"purgeable", b"a:b", b"a b", b"x" * 255,
            b"x" * 256, b"x" * 5000, b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\x1b[2J", b"e" + "\u0301\u0323".encode() * 2000,
            "e\u0301".encode() * 100, b"a\0b", b"=", b"a=b", str(chance.getrandbits(80)).encode(), b"\xf0\x9d\x84\x9e",
            b"\r", "\u202e".encode(), chance.choice(MESSAGES).encode(),
        ])  # fmt: skip

    def number(self) -> bytes:
        chance = self.chance
        known = [*self.pids, os.getpid(), os.getppid(), 1]
        return chance.choice([
            b"0", b"1", b"-1", b"+1", b" 1", b"1 ", b"0x10", b"1.5", b"", b"18446744073709551615", b"18446744073709551616",
            b"9" * 4000, b"1000", b"30000000", str(chance.choice(known)).encode(), "١".encode(),
            str(chance.getrandbits(chance.choice([8, 31, 63]))).encode(),
        ])  # fmt: skip

    def line(self) -> bytes:
        chance = self.chance
        kind = chance.randrange(10)
        if kind < 3:
            flag = chance.choice(FLAGS)
            # WATCHDOG=trigger makes the supervisor end the app as hung: send it rarely.
            value = b"1" if chance.random() < 0.7 else self.text()
            return flag.encode() + b"=" + (b"1" if value == b"trigger" and chance.random() < 0.9 else value)
        if kind < 6:
            return chance.choice(NUMBERS).encode() + b"=" + self.number()
        if kind < 9:
            return chance.choice(TEXTS).encode() + b"=" + self.text()
        return chance.choice([b"", b"=", b"=1", b"READY", b"ready=1", b"READY =1", b" READY=1", self.text() + b"=1", self.text()])

    def datagram(self) -> bytes:
        chance = self.chance
        count = chance.choice([0, 1, 1, 1, 2, 3, 10, 1023, 1025, 3000])
        # STOPPING=1 ends the supervision of the app: send it rarely.
        lines = [each for each in (self.line() for _ in range(count)) if b"STOPPING=1" not in each or chance.random() < 0.03]
        data = chance.choice([b"\n", b"\n", b"\n\n", b"\r\n", b"\0"]).join(lines)
        return data[: chance.choice([65_535, 65_536, 65_537, 200_000])] + chance.choice([b"", b"\n", b"\0", b"\0\0\0"])

    def descriptor(self) -> tuple[list[int], list[socket.socket]]:
        """A descriptor of some kind, with the sockets that were opened for it."""
        chance = self.chance
        kind = chance.randrange(16)
        if kind == 0:
            return [os.memfd_create("fuzz")], []
        if kind == 1:
            return list(os.pipe()), []
        if kind == 2:
            return [], list(socket.socketpair())
        if kind == 3:
            listener = socket.socket(socket.AF_INET)
            listener.bind(("127.0.0.1", 0))
            listener.listen(1)
            return [], [listener]
        if kind == 4:
            file, name = tempfile.mkstemp()
            os.unlink(name)
            return [file], []
        if kind == 5:
            return [os.open("/", os.O_PATH)], []
        if kind == 6:
            return [os.open("/", os.O_DIRECTORY)], []
        if kind == 7:
            return [os.eventfd(chance.randrange(10))], []
        if kind == 8:
            poll = os.dup((made := select.epoll()).fileno())
            made.close()
            return [poll], []
        if kind == 9:
            return [os.pidfd_open(os.getpid())], []
        if kind == 10:
            return [os.open("/dev/null", os.O_RDWR)], []
        if kind == 11:
            return [os.open("/proc/self/ns/net", os.O_RDONLY)], []
        if kind == 12:
            # A descriptor in flight within another one in flight.
            one, other = socket.socketpair()
            given = array.array("i", [other.fileno(), self.kept])
            # The kernel limits a user's descriptors in flight.
            with contextlib.suppress(OSError):
                one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, given)])
            return [], [one, other]
        if kind == 13:
            return [os.open("/proc/self/status", os.O_RDONLY)], []
        if kind == 14:
            one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            with contextlib.suppress(OSError):
                one.connect(self.path)
            return [], [one]
        # A connection that is closed on both sides except for this descriptor.
        one, other = socket.socketpair()
        other.close()
        return [], [one]

    def send(self, data: bytes, descriptors: list[int] | None = None) -> str:
        ancillary = []
        if descriptors:
            self.names.update(line[7:] for line in data.split(b"\n") if line.startswith(b"FDNAME="))
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as out:
            out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            try:
                out.sendmsg([data], ancillary, 0, self.path)
            except OSError as error:
                return error.strerror or "?"
        return "sent"

    # Actions.

    def plain(self) -> None:
        data = self.datagram()
        self.note(f"{data[:200]!r} of {len(data)} bytes: {self.send(data)}")

    def random_bytes(self) -> None:
        self.send(self.chance.randbytes(self.chance.choice([0, 1, 40, 5000, 70_000])))

    def store(self) -> None:
        """Descriptors of some kind, with or without a request to store them."""
        chance = self.chance
        numbers, sockets = self.descriptor()
        try:
            given = [*numbers, *(each.fileno() for each in sockets)] * chance.choice([1, 1, 1, 5, 80])
            data = chance.choice([
                b"FDSTORE=1", b"FDSTORE=1\nFDNAME=" + chance.choice([b"a", b"purgeable-a", self.text()]),
                b"FDSTORE=1\nFDPOLL=0", b"FDSTORE=1\nFDSTOREREMOVE=1\nFDNAME=a", b"FDSTOREREMOVE=1\nFDNAME=a", b"STATUS=x",
                b"FDSTORE=0", b"", b"BARRIER=1", b"BARRIER=1\nREADY=1", b"FDSTORE=1\nBARRIER=1", self.datagram(),
            ])  # fmt: skip
            said = self.send(data, given[:MOST_DESCRIPTORS])
            self.note(f"{data[:120]!r} with {len(given[:MOST_DESCRIPTORS])} descriptors: {said}")
        finally:
            for number in numbers:
                os.close(number)
            for each in sockets:
                each.close()

    def same(self) -> None:
        self.send(b"FDSTORE=1\nFDNAME=same", [self.kept] * self.chance.choice([1, 100]))

    def remove(self) -> None:
        for name in (b"a", b"same", b"stored", b"purgeable-a"):
            self.send(b"FDSTOREREMOVE=1\nFDNAME=" + name)

    def forget(self) -> None:
        """Removes all stored descriptors, unless this process is ended first."""
        for name in self.names:
            self.send(b"FDSTOREREMOVE=1\nFDNAME=" + name)

    def flood(self) -> None:
        data = self.chance.choice([b"WATCHDOG=1", b"READY=1", b"STATUS=flood", b"\n" * 60_000, self.datagram()])
        count = 0
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as out, contextlib.suppress(OSError):
            out.connect(self.path)
            for count in range(1, self.chance.choice([100, 3000])):
                out.send(data)
        self.note(f"a flood of {count} of {data[:80]!r}")

    def another(self) -> None:
        """Sends from a child of the app, which may have exited when the message is read."""
        data = self.datagram()
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                if self.chance.random() < 0.5:
                    os.setsid()
                self.send(data, [self.kept] if self.chance.random() < 0.3 else None)
            os._exit(0)
        if self.chance.random() < 0.7:
            os.waitpid(child, 0)
        self.note(f"a child sends {data[:80]!r}")

    def task(self) -> None:
        name = self.chance.choice([b"upload", b"sync", self.text()])
        self.send(self.chance.choice([b"X_TORPOR_TASK_BEGIN=", b"X_TORPOR_TASK_END="]) + name)

    def step_as_stranger(self) -> None:
        """A step that starts no process: its messages come from a process that is not the app's."""
        self.steps += 1
        self.chance.choice((self.plain, self.random_bytes, self.store, self.same, self.remove, self.flood, self.task))()

    def step(self) -> None:
        actions = (self.plain, self.plain, self.plain, self.random_bytes, self.store, self.store, self.same, self.remove)
        rarer = (self.another, self.task, self.task)
        chance = self.chance
        self.steps += 1
        action = self.flood if chance.random() < 0.02 else chance.choice(actions if chance.random() < 0.8 else rarer)
        action()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
