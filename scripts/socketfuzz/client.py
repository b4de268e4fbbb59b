# SPDX-License-Identifier: Apache-2.0
"""Drives one Varlink socket with many clients at a time, and counts the replies due for each call."""

import array
import contextlib
import dataclasses
import errno
import json
import os
import random
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator

from .messages import WAITING, Maker

MOST_CLIENTS = 24
# A complete message of this size is refused, as is an incomplete one.
MESSAGE_LIMIT = 1 << 20
# Seconds during which replies are read although none is due yet.
PATIENCE = 1.0


class Fault(Exception):
    """A violated invariant, as a sentence."""


class Gone(Fault):
    """The end of torpord or its keeper, which no load of the machine explains."""


@dataclasses.dataclass
class Due:
    """A call that was sent completely."""

    text: str
    method: str
    may_wait: bool
    more: bool


class Client:
    """One connection. It never blocks: bytes that the server does not take are kept."""

    def __init__(self, path: str, note: Callable[[str], None], is_refused: bool = False):
        self.note = note
        # The server answers with one error, whatever is sent.
        self.is_refused = is_refused
        # Oneway calls: they get no reply, but an error if they are malformed.
        self.oneways = 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self.due: deque[Due] = deque()
        self.reads = True
        # The state of each direction.
        self.is_closed = False
        self.has_shut = False
        self.unsent = bytearray()
        self.partial = bytearray()
        self.inbound = bytearray()
        try:
            self.socket.connect(path)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        self.is_closed = True
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Sends arbitrary bytes, and works out which replies are due."""
        if self.is_closed or self.has_shut:
            return
        self.unsent += data
        *whole, rest = (bytes(self.partial) + data).split(b"\0")
        self.partial = bytearray(rest)
        for message in whole:
            self.expect(message)
        self.flush()

    def expect(self, message: bytes) -> None:
        text = message[:300].decode("utf-8", "replace")
        more, method = False, ""
        with contextlib.suppress(ValueError, RecursionError):
            call = json.loads(message)
            if isinstance(call, dict):
                if call.get("oneway") is True:
                    self.oneways += 1
                    return
                more, method = call.get("more") is True, str(call.get("method"))[:100]
        may_wait = any(b"." + word.encode() in message for word in WAITING) or b'"follow"' in message
        self.due.append(Due(text, method, may_wait, more))

    def send_descriptors(self, descriptors: list[int], data: bytes) -> str:
        """Sends a message with descriptors. From Linux 6.16 on, the receiver can refuse these."""
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        if self.is_closed or self.has_shut or self.unsent or self.partial:
            return "not sent"
        try:
            count = self.socket.sendmsg([data], ancillary, socket.MSG_NOSIGNAL)
        except OSError as error:
            return errno.errorcode.get(error.errno or 0, "?")
        self.unsent += data[count:]
        for message in data.split(b"\0")[:-1]:
            self.expect(message)
        self.flush()
        return "sent"

    def flush(self) -> None:
        while self.unsent and not self.is_closed:
            try:
                count = self.socket.send(self.unsent[: 1 << 18], socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return
            except OSError:
                # The server closed the connection; earlier replies can still be read.
                self.unsent.clear()
                self.has_shut = True
                return
            del self.unsent[:count]

    def shut(self) -> None:
        if not self.is_closed and not self.unsent:
            self.has_shut = True
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)

    def read(self, hear: Callable[[str, dict[str, object]], None]) -> None:
        """Reads and checks replies."""
        while not self.is_closed:
            try:
                data = self.socket.recv(1 << 18)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                if self.inbound:
                    # The server dropped the client in the middle of a reply that it had not read.
                    self.note("closed within a reply")
                self.close()
                return
            self.inbound += data
            while (end := self.inbound.find(0)) >= 0:
                message = bytes(self.inbound[:end])
                del self.inbound[: end + 1]
                self.judge(message, hear)

    def judge(self, message: bytes, hear: Callable[[str, dict[str, object]], None]) -> None:
        try:
            reply = json.loads(message.decode("utf-8"))
        except ValueError as error:
            raise Fault(f"a reply is no JSON in UTF-8 ({error}): {message[:300]!r}") from error
        if not isinstance(reply, dict) or not set(reply) <= {"parameters", "error", "continues"}:
            raise Fault(f"a reply has not the form of one: {message[:300]!r}")
        if not self.due and "error" in reply:
            # The message was refused, too long, or malformed.
            if self.is_refused or len(self.partial) >= MESSAGE_LIMIT or self.oneways > 0:
                self.is_refused, self.oneways = False, self.oneways - 1
                self.partial.clear()
                return
        if not self.due:
            raise Fault(f"a reply that no call is due came: {message[:300]!r}")
        due = self.due[0]
        if reply.get("continues"):
            if not due.more:
                raise Fault(f"more replies follow to a call without more: {due.text}")
        else:
            self.due.popleft()
        hear(due.method, reply)


@contextlib.contextmanager
def as_user(user: tuple[int, int, list[int]] | None) -> Iterator[None]:
    """Connects as a user, a group and further groups, as the kernel reports them to the server."""
    if user is None:
        yield
        return
    groups = os.getgroups()
    os.setgroups(user[2])
    os.setegid(user[1])
    os.seteuid(user[0])
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


class StreamFuzzer:
    """Random steps on one socket."""

    def __init__(
        self,
        path: str,
        chance: random.Random,
        maker: Maker,
        note: Callable[[str], None],
        users: list[tuple[int, int, list[int]] | None],
        strangers: list[tuple[int, int, list[int]]],
    ):
        self.path = path
        self.chance = chance
        self.maker = maker
        self.note = note
        self.users = [*users, *strangers]
        self.strangers = strangers
        self.clients: list[Client] = []
        self.steps = 0
        self.calls = 0
        self.replies = 0
        # Methods that were answered without an error.
        self.done: set[str] = set()
        self.actions: list[tuple[int, Callable[[], object]]] = [
            (40, self.valid), (22, self.mutated), (6, self.pipeline), (3, self.half), (3, self.garbage), (2, self.long),
            (1, self.endless), (2, self.empty), (4, self.shut), (4, self.leave), (3, self.descriptors), (6, self.join),
            (1, self.crowd), (2, self.deaf), (10, self.look), (2, self.wide),
        ]  # fmt: skip

    def hear(self, method: str, reply: dict[str, object]) -> None:
        self.replies += 1
        if "error" not in reply:
            self.done.add(method)
        self.maker.hear(reply.get("parameters"))

    def client(self) -> Client:
        """An existing client, or a new one."""
        alive = [each for each in self.clients if not each.is_closed]
        if alive and (len(alive) >= MOST_CLIENTS or self.chance.random() < 0.8):
            return self.chance.choice(alive)
        return self.join()

    def doomed(self) -> Client:
        """A client whose connection is likely to be closed: mostly a new one, so that others get their replies."""
        return self.join() if self.chance.random() < 0.7 else self.client()

    def join(self) -> Client:
        if len(self.clients) >= MOST_CLIENTS:
            self.drop(self.clients[self.chance.randrange(len(self.clients))])
        user = self.chance.choice(self.users)
        with as_user(user):
            client = Client(self.path, self.note, user in self.strangers)
        self.clients.append(client)
        return client

    def drop(self, client: Client) -> None:
        client.close()
        self.clients.remove(client)

    def step(self) -> None:
        """Takes one action, then reads and checks replies."""
        actions, weights = [each for _, each in self.actions], [weight for weight, _ in self.actions]
        action = self.chance.choices(actions, weights)[0]
        self.steps += 1
        try:
            action()
        except (BlockingIOError, ConnectionError, FileNotFoundError) as error:
            # The backlog is full, or the socket is missing since the app does not run.
            self.note(f"{action.__name__}: {error}")
        for client in list(self.clients):
            client.flush()
            if client.reads:
                client.read(self.hear)
            if client.is_closed:
                self.drop(client)

    def message(self, may_wait: bool = True) -> bytes:
        """A valid call that names only victims."""
        while True:
            call = self.maker.call()
            message = self.encoded(call)
            if not may_wait and call["method"].rpartition(".")[2] in WAITING:
                continue
            if self.maker.is_harmless(message):
                self.calls += 1
                return message

    def encoded(self, call: dict[str, object]) -> bytes:
        return json.dumps(call, ensure_ascii=self.chance.random() < 0.5).encode("utf-8", "surrogatepass")

    def send(self, client: Client, data: bytes) -> None:
        most = 300 if data.startswith(b"{") else 60
        shown = data if len(data) <= most else data[:most] + b" ... of %d bytes" % len(data)
        self.note(f"{client.socket.fileno()} <- {shown!r}")
        client.send(data)

    # Actions.

    def valid(self) -> None:
        self.send(self.client(), self.message() + b"\0")

    def mutated(self) -> None:
        message = self.maker.mutated()
        if self.maker.is_harmless(message):
            self.send(self.doomed(), message + b"\0")

    def pipeline(self) -> None:
        count = self.chance.choice([2, 5, 40, 300])
        may_wait = self.chance.random() < 0.3
        self.send(self.client(), b"".join(self.message(may_wait) + b"\0" for _ in range(count)))

    def half(self) -> None:
        """A part of a call, which is joined with the next bytes on the connection."""
        message = self.message()
        # Joined with the next message it is not JSON, so it can do no harm.
        self.send(self.doomed(), message[: self.chance.randrange(1, len(message))])

    def wide(self) -> None:
        if "io.torpor.Manager" in self.maker.interfaces:
            self.send(self.client(), self.maker.wide() + b"\0")

    def garbage(self) -> None:
        data = self.chance.randbytes(self.chance.choice([1, 10, 1000, 100_000]))
        self.send(self.doomed(), data)

    def long(self) -> None:
        size = self.chance.choice([MESSAGE_LIMIT - 100, MESSAGE_LIMIT - 2, MESSAGE_LIMIT, MESSAGE_LIMIT + 1])
        body = self.chance.choice([b'{"method":"' + b"a" * size, b"[" * size, b"[0," * (size // 3), b" " * size])
        self.send(self.doomed(), body[:size] + b"\0")

    def endless(self) -> None:
        """16 MiB without an end, as far as the server takes them."""
        self.send(self.doomed(), b'{"method":"io.torpor' + bytes([self.chance.randrange(1, 256)]) * (16 << 20))

    def empty(self) -> None:
        self.send(self.doomed(), b"\0" * self.chance.choice([1, 2, 500]))

    def shut(self) -> None:
        client = self.client()
        if self.chance.random() < 0.5:
            self.send(client, self.message() + b"\0")
        self.note(f"{client.socket.fileno()} shut")
        client.shut()

    def leave(self) -> None:
        client = self.doomed()
        if self.chance.random() < 0.5:
            self.send(client, self.message() + (b"\0" if self.chance.random() < 0.5 else b""))
        self.note(f"{client.socket.fileno()} closed")
        self.drop(client)

    def descriptors(self) -> None:
        ends = os.pipe()
        try:
            count = self.chance.choice([1, 2, 253])
            said = self.client().send_descriptors([ends[0]] * count, self.message() + b"\0")
            self.note(f"{count} descriptors: {said}")
        finally:
            for end in ends:
                os.close(end)

    def crowd(self) -> None:
        """Many connections at once that send little or nothing."""
        crowd: list[Client] = []
        # Not Apply: it takes milliseconds, and only root may call it, which has no share of the loop that would limit
        # it.
        text = self.chance.choice([b"", b"{", self.message(False) + b"\0"])
        with contextlib.suppress(BlockingIOError, ConnectionError, FileNotFoundError):
            for _ in range(self.chance.choice([20, 200])):
                user = self.chance.choice(self.users)
                with as_user(user):
                    crowd.append(Client(self.path, self.note, user in self.strangers))
                crowd[-1].send(text)
        self.note(f"a crowd of {len(crowd)} with {text[:80]!r}")
        for client in crowd:
            client.close()

    def deaf(self) -> None:
        """A client that requests much and does not read."""
        client = self.client()
        client.reads = False
        self.send(client, b"".join(self.message(False) + b"\0" for _ in range(100)))

    def look(self) -> None:
        """Waits a moment, so that earlier requests take effect."""
        bound = self.chance.choice([0.0, 0.02, 0.2])
        select.select([each.socket for each in self.clients if each.due], [], [], bound)

    def settle(self, bound: float) -> None:
        """Reads until each call has its reply or a closed connection, except calls that may wait; then closes all."""
        began = time.monotonic()
        while True:
            for client in list(self.clients):
                client.reads = True
                client.flush()
                client.read(self.hear)
                if client.is_closed:
                    self.drop(client)
            # Calls after one that may wait are not read by the server.
            late = [each for each in self.clients if each.due and not any(due.may_wait for due in each.due)]
            waiting = [each for each in self.clients if each.due]
            if not late and (not waiting or time.monotonic() - began > PATIENCE):
                break
            if late and time.monotonic() - began > bound:
                texts = [each.due[0].text for each in late]
                raise Fault(f"no reply and no end of the connection within {bound:.0f} s: {texts[:3]}")
            select.select([each.socket for each in waiting], [], [], 0.1)
        for client in list(self.clients):
            self.drop(client)
