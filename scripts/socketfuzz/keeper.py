# SPDX-License-Identifier: Apache-2.0
"""Acts as torpord for a real keeper: sends valid and invalid messages in any order, and dies in between.

The messages are those of Sources/CKeeperProtocol/include/torpor_keeper_protocol.h.
"""

import argparse
import array
import contextlib
import dataclasses
import os
import random
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable

from . import proc
from .client import Fault, Gone
from .supervisor import BOUND, PARTS

VERSION = 4
#: Those that a keeper speaks too: an older torpord may come back after a downgrade.
OLDER = (2, 3)
HELLO, LAUNCH, SLOT_FREE, ORPHAN_FREE, HOLD, RELEASE, TAKE, LIST = range(1, 9)
MANAGER, BYE, ADOPT, TAKE_ALL, HANDOVER, SETTLED, REST = range(9, 16)
WELCOME, TABLE, TABLE_END, LAUNCHED, LAUNCH_FAILED, EXITED, ORPHAN, DONE = range(101, 109)
TAKEN, NAMES, REFUSED, HELD = range(109, 113)
STDIN, STDOUT, STDERR = 1 << 1, 1 << 2, 1 << 3
HELPER, DIRECTORY, UMASK, NICE, LISTEN_PID, INPUT_FILE = 1, 1 << 5, 1 << 7, 1 << 8, 1 << 10, 1 << 13
# The state of a running app. For one still launching, LAUNCHED or LAUNCH_FAILED follows; the latter names no slot.
RUNNING = 2
MOST_DESCRIPTORS = 253
# A flag in ids of messages that are malformed, or may be: their answers are not counted.
LOOSE = 1 << 31
HEAD = struct.Struct("<II")
RECORD = struct.Struct("<IIIIiIQQIiiIIIQQQQ64s")
STEPS = 250
ANSWER_SECONDS = 0.25
MOST_HELD = 600
MORE_DESCRIPTORS = 6
MORE_MEMORY = 32 << 10


@dataclasses.dataclass
class Answer:
    """The answer due for a message."""

    kinds: tuple[int, ...]
    text: str
    heard: Callable[[bytes, list[int]], None]


class KeeperSession:
    """One keeper, and rounds of messages."""

    def __init__(self, options: argparse.Namespace, seed: int):
        self.options = options
        self.seed = seed
        self.said: deque[str] = deque(maxlen=40)
        self.done: set[str] = set()
        self.round = self.step = self.steps = self.answers = self.deaths = self.launches = 0
        self.longest = 0.0
        # Whether the keeper has reported everything that runs, after HELLO.
        self.is_told = False
        self.socket: socket.socket | None = None
        self.driver: socket.socket | None = None
        # What the keeper must know.
        self.due: dict[int, Answer] = {}
        self.held: dict[str, int] = {}
        self.live: dict[int, tuple[int, int, str]] = {}
        self.exited: dict[int, int] = {}
        self.children: list[subprocess.Popen[bytes]] = []
        self.baseline: tuple[int, int] | None = None

    def run(self, until: float) -> None:
        self.folder = tempfile.mkdtemp(prefix="torpor-sockets-keeper-")
        self.log_path = os.path.join(self.folder, "log")
        self.chance = random.Random(f"{self.seed}/start")
        shutil.copytree(PARTS, os.path.join(self.folder, "socketfuzz"), ignore=shutil.ignore_patterns("__pycache__"))
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(self.folder, "driver"))
        self.listener.listen(4)
        self.mark = {"TORPOR_FUZZ": self.folder, "PATH": "/usr/bin:/bin"}
        self.process = None
        try:
            program = self.sanitized() if self.options.sanitize else os.path.join(self.options.programs, "torpor-keeper")
            python = os.path.realpath("/usr/bin/python3")
            environment = {**self.mark, "TORPOR_LOOP_WATCHDOG_MS": "0", "TORPOR_RESTART_DELAY_CAP_MS": "20",
                           "ASAN_OPTIONS": "detect_leaks=0", "PYTHONPATH": self.folder}  # fmt: skip
            with open(self.log_path, "wb") as log:
                self.process = subprocess.Popen(
                    [program, python, "-S", "-m", "socketfuzz.stand_in", os.path.join(self.folder, "driver")],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True,
                )  # fmt: skip
            self.identity = proc.identity(self.process.pid)
            self.become_torpord()
            self.launch(["/bin/sleep", "100000"], app="bystander")
            self.settle()
            self.bystander = next(pid for _, pid, app in self.live.values() if app == "bystander")
            self.bystander_identity = proc.identity(self.bystander)
            while self.round == 0 or time.monotonic() < until:
                self.round += 1
                self.chance = random.Random(f"{self.seed}/{self.round}/keeper")
                for self.step in range(1, STEPS + 1):
                    self.one_step()
                self.steps += STEPS
                self.judge()
            self.say_bye()
        finally:
            self.end()

    def sanitized(self) -> str:
        """Builds a keeper with sanitizers."""
        sources = os.path.join(os.path.dirname(os.path.dirname(PARTS)), "Sources")
        keeper = os.path.join(sources, "torpor-keeper")
        program = os.path.join(self.folder, "torpor-keeper")
        command = ["cc", "-std=gnu11", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
                   f"-I{sources}/CKeeperProtocol/include", f"{sources}/CKeeperProtocol/protocol.c", "-o", program,
                   *(os.path.join(keeper, name) for name in sorted(os.listdir(keeper)) if name.endswith(".c"))]  # fmt: skip
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            raise Fault(f"the keeper does not compile with sanitizers: {made.stderr[-2000:]}")
        return program

    def log(self) -> str:
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def note(self, text: str) -> None:
        self.said.append(text[:400])

    # torpord's side.

    def become_torpord(self) -> None:
        """Takes over from the next stand-in, and sends HELLO."""
        if not select.select([self.listener], [], [], BOUND)[0]:
            raise Fault(f"no torpord was started: {self.log()[-2000:]}")
        self.driver, _ = self.listener.accept()
        data, descriptors, _, _ = socket.recv_fds(self.driver, 64, 1)
        self.stand_in = int(data)
        self.socket = socket.socket(fileno=descriptors[0])
        self.socket.setblocking(False)
        self.due.clear()
        self.live.clear()
        self.exited.clear()
        self.next_id = 1
        # Sometimes other messages come before HELLO.
        for _ in range(self.chance.choice([0, 0, 3])):
            self.send(struct.pack("<III", self.chance.choice([LIST, SETTLED, REST, HANDOVER, LAUNCH]), LOOSE, 0))
        self.is_told = False
        self.ask(HELLO, struct.pack("<I", VERSION), (WELCOME,), "HELLO")
        until = time.monotonic() + BOUND
        while not self.is_told and time.monotonic() < until:
            self.read(0.2)
        self.settle()

    def leave(self) -> None:
        """Stops acting as torpord."""
        if self.socket is not None:
            self.socket.close()
        if self.driver is not None:
            self.driver.close()
        self.socket = self.driver = None

    def send(self, message: bytes, descriptors: list[int] | None = None) -> bool:
        """Sends, and reads while the socket is full."""
        ancillary = []
        if descriptors:
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        until = time.monotonic() + BOUND
        while self.socket is not None:
            try:
                self.socket.sendmsg([message], ancillary, socket.MSG_NOSIGNAL)
                return True
            except BlockingIOError:
                self.read(0.05)
            except OSError as error:
                if error.errno not in (90, 105, 109):  # EMSGSIZE, ENOBUFS, ETOOMANYREFS
                    raise
                self.note(f"{error}")
                return False
            if time.monotonic() > until:
                raise Fault(f"the keeper reads nothing for {BOUND:.0f} s")
        return False

    def ask(
        self,
        kind: int,
        body: bytes,
        kinds: tuple[int, ...],
        text: str,
        heard: Callable[[bytes, list[int]], None] = lambda body, descriptors: None,
        descriptors: list[int] | None = None,
    ) -> None:
        """Sends a message that must get one answer."""
        number, self.next_id = self.next_id, self.next_id + 1
        self.note(f"{number}: {text}")
        self.due[number] = Answer(kinds, text, heard)
        if not self.send(HEAD.pack(kind, number) + body, descriptors):
            del self.due[number]

    def read(self, seconds: float) -> bool:
        """Reads one message; false on timeout."""
        assert self.socket is not None
        if not select.select([self.socket], [], [], seconds)[0]:
            return False
        try:
            data, descriptors, flags, _ = socket.recv_fds(self.socket, 1 << 18, MOST_DESCRIPTORS)
        except BlockingIOError:
            return False
        try:
            if not data:
                raise Fault(f"the keeper has closed the socket: {self.log()[-3000:]}")
            if len(data) < HEAD.size or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
                raise Fault(f"a message of {len(data)} bytes with {len(descriptors)} descriptors, flags {flags}")
            self.hear(data, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def hear(self, data: bytes, descriptors: list[int]) -> None:
        kind, number = HEAD.unpack_from(data)
        body = data[HEAD.size :]
        if kind == TABLE_END:
            self.is_told = True
        if kind in (TABLE, LAUNCHED, EXITED):
            self.hear_record(kind, body[: RECORD.size] if kind == TABLE else body)
            # A table has more records in a message, each with a head of its own.
            for start in range(RECORD.size, len(body) if kind == TABLE else 0, HEAD.size + RECORD.size):
                self.hear_record(kind, body[start + HEAD.size : start + HEAD.size + RECORD.size])
        if number & LOOSE:
            return
        if number == 0:
            if kind not in (TABLE, TABLE_END, LAUNCHED, EXITED, ORPHAN, REFUSED):
                raise Fault(f"message {kind} without an id")
            return
        answer = self.due.pop(number, None)
        if answer is None:
            raise Fault(f"message {kind} answers {number}, to which nothing is due (any more)")
        if kind not in answer.kinds:
            raise Fault(f"message {kind} answers {answer.text}; {answer.kinds} would")
        self.answers += 1
        answer.heard(body, descriptors)

    def hear_record(self, kind: int, body: bytes) -> None:
        if len(body) != RECORD.size:
            raise Fault(f"a record of {len(body)} bytes, not {RECORD.size}")
        fields = RECORD.unpack(body)
        slot, state, generation, pid, app = fields[0], fields[2], fields[3], fields[4], fields[18]
        name = app.split(b"\0")[0].decode("utf-8", "replace")
        if kind == EXITED:
            self.live.pop(slot, None)
            self.exited[slot] = generation
            if name == "bystander":
                raise Fault("the keeper says that the bystander has ended")
        elif state == RUNNING:
            self.live[slot] = (generation, pid, name)

    def settle(self) -> None:
        """Reads until no answer is due."""
        until = time.monotonic() + BOUND
        while self.due:
            if not self.read(0.2) and time.monotonic() > until:
                raise Fault(f"no answer within {BOUND:.0f} s to {[each.text for each in self.due.values()][:4]}")
        while self.read(0):
            pass

    # Steps.

    def one_step(self) -> None:
        actions = [
            (10, self.some_launch), (6, self.end_one), (6, self.free_slots), (10, self.hold), (6, self.release),
            (5, self.take), (4, self.take_all), (4, self.list), (4, self.adopt), (2, self.manager), (2, self.rest),
            (3, self.settled), (1, self.greet_again), (2, self.free_orphans), (14, self.garbage), (6, self.spoilt),
            (2, self.flood), (1, self.die), (1, self.hand_over), (1, self.hang_up), (8, self.listen),
        ]  # fmt: skip
        self.chance.choices([each for _, each in actions], [weight for weight, _ in actions])[0]()

    def listen(self) -> None:
        for _ in range(self.chance.choice([1, 20])):
            self.read(0.005)

    def plan(self, arguments: list[str], app: str, flags: int, passed: int, environment: list[str]) -> bytes:
        """The body of a LAUNCH."""
        chance = self.chance
        limits = [(7, 512, 1024)] if chance.random() < 0.2 else []
        strings = [app, arguments[0], "/" if flags & DIRECTORY else ""]
        strings += ["/dev/null"] if flags & INPUT_FILE else []
        strings += [*arguments, *environment]
        return (
            struct.pack("<IIIIIiiIIIII", chance.randrange(1 << 16), flags, 0, 0, 0o22, 3, 0, passed, len(limits), 0,
                        len(arguments), len(environment))
            + b"".join(struct.pack("<IIQQ", each[0], 0, each[1], each[2]) for each in limits)
            + b"".join(each.encode() + b"\0" for each in strings)
        )  # fmt: skip

    def launch(self, arguments: list[str], app: str = "web", flags: int = 0, descriptors: list[int] | None = None) -> None:
        given = descriptors or []
        environment = [f"{name}={value}" for name, value in self.mark.items()] + ["LISTEN_PID=1234567890"]
        passed = len(given) - bin(flags & (STDIN | STDOUT | STDERR)).count("1")
        self.launches += 1
        self.ask(LAUNCH, self.plan(arguments, app, flags, passed, environment), (LAUNCHED, LAUNCH_FAILED),
                 f"LAUNCH {arguments[:3]} {flags:x} of {app}", descriptors=given)  # fmt: skip

    def some_launch(self) -> None:
        chance = self.chance
        if len(self.live) > 40:
            return self.end_one()
        programs = [["/bin/true"], ["/bin/sh", "-c", f"exit {chance.randrange(256)}"], ["/bin/sleep", "100000"],
                    ["/bin/sh", "-c", "(sleep 0.1 & ) & exit 3"], ["/bin/sh", "-c", "kill -SEGV $$"],
                    ["/nowhere"], ["/etc/passwd"],
                    ["/bin/sh", "-c", "trap '' TERM; sleep 100000"], ["/bin/true", "", "", *["x" * 1000] * 150]]  # fmt: skip
        flags = chance.choice([0, 0, HELPER, DIRECTORY, UMASK, NICE, LISTEN_PID, STDIN, STDOUT | STDERR, INPUT_FILE])
        with open("/dev/null", "rb") as null:
            count = bin(flags & (STDIN | STDOUT | STDERR)).count("1") + chance.choice([0, 0, 1, 20])
            self.launch(chance.choice(programs), chance.choice(["web", "x" * 63, "a@1"]), flags, [null.fileno()] * count)

    def end_one(self) -> None:
        # Not SIGSEGV: in a child before its exec, the keeper's sanitizer would report it as a fault of the keeper.
        mortal = [pid for _, pid, app in self.live.values() if app != "bystander"]
        if mortal:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.chance.choice(mortal), self.chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGQUIT]))

    def free_slots(self) -> None:
        """Frees reported slots with the right generation, or with a wrong one."""
        chance = self.chance
        for slot, generation in list(self.exited.items())[: chance.choice([1, 100])]:
            if chance.random() < 0.7:
                del self.exited[slot]
                self.send(struct.pack("<IIII", SLOT_FREE, LOOSE, slot, generation))
            else:
                self.send(struct.pack("<IIII", SLOT_FREE, LOOSE, slot, generation + chance.choice([1, -1 if generation else 1])))
        for slot, (generation, _, _) in list(self.live.items())[:2]:
            self.send(struct.pack("<IIII", SLOT_FREE, LOOSE, slot, generation))

    def free_orphans(self) -> None:
        self.send(struct.pack("<IIQ", ORPHAN_FREE, LOOSE, self.chance.choice([0, 1, 5, 100, 1 << 63, (1 << 64) - 1])))

    def name(self) -> str:
        chance = self.chance
        names = ["web/notify", "web/fifo", "db", "a b", "\x7f", "x" * 23, "x" * 24, "y" * 383]
        return chance.choice([*names, f"n{chance.randrange(40)}"])

    def hold(self) -> None:
        chance = self.chance
        name, flags = self.name(), chance.choice([0, 0, 1, 1, 4])
        count = chance.choice([1, 1, 2, 30, MOST_DESCRIPTORS])
        if sum(self.held.values()) + count > MOST_HELD:
            return self.release()
        one, other = os.pipe()

        def heard(body: bytes, _: list[int]) -> None:
            if struct.unpack("<I", body)[0] == 0:
                self.held[name] = count + (0 if flags & 1 else self.held.get(name, 0))
            else:
                raise Fault(f"HOLD of {count} under {name!r} fails with {struct.unpack('<I', body)[0]}")

        self.ask(HOLD, struct.pack("<I", flags) + name.encode() + b"\0", (DONE,), f"HOLD {name!r} {count} {flags}",
                 heard, [chance.choice([one, other]) for _ in range(count)])  # fmt: skip
        os.close(one)
        os.close(other)

    def release(self) -> None:
        name = self.chance.choice([*self.held, self.name()])

        def heard(body: bytes, _: list[int]) -> None:
            error = struct.unpack("<I", body)[0]
            if (error == 0) != (self.held.pop(name, 0) > 0):
                raise Fault(f"RELEASE of {name!r} says {error}")

        self.ask(RELEASE, name.encode() + b"\0", (DONE,), f"RELEASE {name!r}", heard)

    def take(self) -> None:
        name = self.chance.choice([*self.held, self.name()])
        offset = self.chance.choice([0, 0, 1, 253, 1 << 31])

        def heard(body: bytes, descriptors: list[int]) -> None:
            error, count = struct.unpack("<II", body)
            known = self.held.get(name, 0)
            wanted = min(MOST_DESCRIPTORS, max(0, known - offset))
            if (error == 0) != (known > 0) or count != known or len(descriptors) != wanted:
                raise Fault(f"TAKE of {name!r} from {offset}: error {error}, {count} and {len(descriptors)}, not {known}")

        self.ask(TAKE, struct.pack("<I", offset) + name.encode() + b"\0", (TAKEN,), f"TAKE {name!r} {offset}", heard)

    def take_all(self) -> None:
        cursor = self.chance.choice([(0, 0), (0, 1), (5, 0), (1 << 31, 7), (0, 1 << 31), (3, 300)])
        self.ask(TAKE_ALL, struct.pack("<II", *cursor), (HELD,), f"TAKE_ALL {cursor}")

    def list(self) -> None:
        cursor = self.chance.choice([0, 1, 50, 1 << 31])
        self.ask(LIST, struct.pack("<I", cursor), (NAMES,), f"LIST {cursor}")

    def adopt(self) -> None:
        """Adopts a child of this process, or something that is none."""
        chance = self.chance
        if len(self.children) > 8:
            child = self.children.pop(0)
            child.kill()
            child.wait()
        kind = chance.randrange(6)
        if kind < 2:
            child = subprocess.Popen(["/bin/sleep", "100000"], env=self.mark)
            self.children.append(child)
            pid = child.pid
        else:
            pid = chance.choice([1, os.getpid(), self.identity[0], self.stand_in, self.bystander])
        try:
            descriptor = os.pidfd_open(pid) if kind < 5 else os.eventfd(0)
        except ProcessLookupError:
            return
        if kind >= 2 and pid in (1, os.getpid()):
            # A real one would be adopted, and ended with the apps.
            pid += 1
        start = int(proc.identity(pid)[1] or 0)
        app = chance.choice(["foster", "x" * 64, "", "x" * 63])
        self.ask(ADOPT, struct.pack("<IiQ", 1, pid, start) + app.encode() + b"\0", (DONE,), f"ADOPT {pid} {app!r}",
                 descriptors=[descriptor] * chance.choice([1, 1, 1, 0, 2]))  # fmt: skip
        os.close(descriptor)

    def manager(self) -> None:
        self.send(HEAD.pack(MANAGER, LOOSE) + self.chance.choice([b"STATUS=x", b"", b"\0", b"A=1\n" * 3000, b"\xff" * 8192]))

    def rest(self) -> None:
        self.send(HEAD.pack(REST, LOOSE))

    def settled(self) -> None:
        self.send(HEAD.pack(SETTLED, LOOSE) + self.chance.choice([b"", b"more"]))

    def greet_again(self) -> None:
        version = self.chance.choice([VERSION, *OLDER, OLDER[0] - 1, VERSION + 1, 0, (1 << 32) - 1])
        answer = WELCOME if version in (*OLDER, VERSION) else REFUSED
        self.ask(HELLO, struct.pack("<I", version), (answer,), f"HELLO {version}")

    def valid(self) -> bytes:
        """Any message as bytes; its answers are not counted."""
        chance = self.chance
        name = self.name().encode() + b"\0"
        kind = chance.choice([LAUNCH, HOLD, TAKE, LIST, TAKE_ALL, ADOPT, SLOT_FREE, ORPHAN_FREE, MANAGER])
        body = {
            LAUNCH: self.plan(["/bin/true"], "web", 0, 0, ["A=1"]), HOLD: struct.pack("<I", 0) + name,
            TAKE: struct.pack("<I", 0) + name, LIST: struct.pack("<I", 0), TAKE_ALL: struct.pack("<II", 0, 0),
            ADOPT: struct.pack("<IiQ", 1, 999_999, 1) + b"a\0", SLOT_FREE: struct.pack("<II", 99_999, 1),
            ORPHAN_FREE: struct.pack("<Q", 0), MANAGER: b"STATUS=x",
        }[kind]  # fmt: skip
        return HEAD.pack(kind, LOOSE | chance.getrandbits(20)) + body

    def send_loose(self, message: bytes) -> None:
        """Sends any message except BYE, HANDOVER and RELEASE, with an id whose answers are not counted."""
        chance = self.chance
        data = bytearray(message)
        if len(data) >= 8:
            data[7] |= 0x80
            if HEAD.unpack_from(data)[0] in (BYE, RELEASE, HANDOVER):
                data[0] = 99
        with open("/dev/null", "rb") as null:
            # Send no HOLD with descriptors by chance: this program must know what the keeper holds.
            holds = len(data) >= 8 and HEAD.unpack_from(data)[0] == HOLD
            count = 0 if holds else chance.choice([0, 0, 0, 1, 5, MOST_DESCRIPTORS])
            self.send(bytes(data), [null.fileno()] * count)

    def garbage(self) -> None:
        chance = self.chance
        kind = chance.randrange(4)
        if kind == 0:
            self.send_loose(chance.randbytes(chance.randrange(1, 200)))
        elif kind == 1:
            number = chance.choice([*range(0, 17), 99, 101, 112])
            self.send_loose(HEAD.pack(number, LOOSE) + chance.randbytes(chance.randrange(80)))
        elif kind == 2:
            self.send_loose(b"" if chance.random() < 0.2 else HEAD.pack(99, LOOSE)[: chance.randrange(8)])
        else:
            size = chance.choice([190 << 10, 192 << 10, 200 << 10, 256 << 10, (256 << 10) + 1, 300 << 10])
            self.send_loose(HEAD.pack(chance.choice([LAUNCH, HOLD, MANAGER, TAKE]), LOOSE) + b"x" * size)

    def spoilt(self) -> None:
        """A valid message that is cut, extended, or has flipped bits."""
        chance = self.chance
        data = bytearray(self.valid())
        kind = chance.randrange(4)
        if kind == 0:
            del data[chance.randrange(8, len(data)) :]
        elif kind == 1:
            data += chance.randbytes(chance.choice([1, 8, 5000]))
        else:
            for _ in range(chance.choice([1, 1, 4])):
                at = chance.randrange(8, len(data))
                data[at] ^= 1 << chance.randrange(8)
        self.send_loose(bytes(data))

    def flood(self) -> None:
        """Sends many requests, and reads only when it must."""
        for _ in range(self.chance.choice([100, 1000])):
            self.chance.choice([self.list, self.take, self.take_all])()

    # The end of a torpord.

    def gone(self) -> None:
        self.leave()
        self.deaths += 1
        self.become_torpord()
        if self.bystander not in [pid for _, pid, _ in self.live.values()]:
            raise Fault("the next torpord is not told of the bystander")

    def die(self) -> None:
        self.settle()
        self.note("the stand-in is killed")
        os.kill(self.stand_in, signal.SIGKILL)
        self.gone()

    def hang_up(self) -> None:
        """Closes its socket long before it exits."""
        self.settle()
        self.note("the stand-in closes its socket, then exits with 3")
        assert self.socket is not None and self.driver is not None
        self.socket.close()
        time.sleep(self.chance.choice([0, 0.05]))
        self.driver.send(b"3")
        self.gone()

    def hand_over(self) -> None:
        self.settle()
        assert self.driver is not None
        flags = self.chance.choice([0, 1])
        self.send(HEAD.pack(SETTLED, LOOSE))
        self.send(struct.pack("<III", HANDOVER, LOOSE, flags))
        self.note(f"HANDOVER {flags}")
        # Read first, since this requests an answer.
        self.ask(LIST, struct.pack("<I", 0), (NAMES,), "LIST")
        self.settle()
        self.driver.send(b"0")
        self.gone()

    # Invariants.

    def judge(self) -> None:
        self.settle()
        if proc.identity(self.identity[0]) != self.identity:
            raise Gone(f"the keeper is gone: {self.log()[-3000:]}")
        if proc.identity(self.bystander) != self.bystander_identity or proc.stat(self.bystander)[0] != "S":
            raise Fault(f"the bystander, process {self.bystander}, is gone or stopped")
        for word in ("Sanitizer", "runtime error"):
            if word in self.log():
                raise Fault(f"it said: {self.log()[-6000:]}")
        self.judge_held()
        self.measure()
        self.quiet()

    def judge_held(self) -> None:
        """LIST and TAKE_ALL report everything that is held, each once."""
        names: list[str] = []
        counts: dict[str, int] = {}
        cursor, pair, total = 0, (0, 0), 0

        def listed(body: bytes, _: list[int]) -> None:
            nonlocal cursor
            cursor, count = struct.unpack_from("<II", body)
            names.extend(each.decode() for each in body[8:].split(b"\0")[:count])

        def given(body: bytes, descriptors: list[int]) -> None:
            nonlocal pair, total
            first, second, count = struct.unpack_from("<III", body)
            pair, at, here = (first, second), 12, 0
            for _ in range(count):
                number = struct.unpack_from("<H", body, at)[0]
                end = body.index(b"\0", at + 2)
                name = body[at + 2 : end].decode()
                counts[name] = counts.get(name, 0) + number
                here += number
                at = end + 1
            if here != len(descriptors):
                raise Fault(f"HELD says {here} descriptors, and {len(descriptors)} came")
            total += here

        for again in range(1000):
            if again == 0 or cursor != 0:
                self.ask(LIST, struct.pack("<I", cursor), (NAMES,), "LIST", listed)
            if again == 0 or pair != (0, 0):
                self.ask(TAKE_ALL, struct.pack("<II", *pair), (HELD,), "TAKE_ALL", given)
            self.settle()
            if cursor == 0 and pair == (0, 0):
                break
        if sorted(names) != sorted(self.held) or counts != self.held:
            raise Fault(f"held are {names} {counts}, and were to be {self.held}")

    def measure(self) -> None:
        """Measures an answer, without the time that the keeper and this process wait for a CPU."""
        times: list[float] = []
        for _ in range(5):
            before, began = waits(self.identity[0]), time.monotonic()
            self.ask(LIST, struct.pack("<I", 0), (NAMES,), "LIST")
            self.settle()
            took = time.monotonic() - began - (waits(self.identity[0]) - before)
            self.longest = max(self.longest, took)
            times.append(took)
        if (usual := sorted(times)[2]) > ANSWER_SECONDS:
            raise Fault(f"an answer of the keeper takes {usual:.3f} s of its own")

    def quiet(self) -> None:
        """Ends and releases everything: then the keeper must have freed its resources."""
        for name in list(self.held):
            self.ask(RELEASE, name.encode() + b"\0", (DONE,), f"RELEASE {name!r}")
        self.held.clear()
        self.settle()
        for child in self.children:
            child.kill()
            child.wait()
        self.children.clear()
        until = time.monotonic() + BOUND
        while True:
            for _, pid, app in list(self.live.values()):
                if app != "bystander":
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            for slot, generation in self.exited.items():
                self.send(struct.pack("<IIII", SLOT_FREE, LOOSE, slot, generation))
            self.exited.clear()
            self.read(0.05)
            used = proc.descriptors(self.identity[0]), proc.status(self.identity[0], "VmRSS")
            if len(self.live) == 1 and self.baseline is None:
                self.baseline = used
            if self.baseline is not None and len(self.live) == 1 and used[0] <= self.baseline[0] + MORE_DESCRIPTORS \
                    and (self.options.sanitize or used[1] <= self.baseline[1] + MORE_MEMORY):
                return
            if time.monotonic() > until:
                raise Fault(f"the keeper has {used} descriptors and KiB, {self.baseline} after the first round; "
                            f"alive are {self.live}; {proc.descriptor_names(self.identity[0])}")  # fmt: skip

    def say_bye(self) -> None:
        """The exit that follows is intended: the keeper exits with the same status."""
        assert self.driver is not None and self.process is not None
        os.kill(self.bystander, signal.SIGKILL)
        self.send(struct.pack("<III", BYE, LOOSE, 0))
        self.driver.send(b"7")
        try:
            status = self.process.wait(BOUND)
        except subprocess.TimeoutExpired as error:
            raise Fault("the keeper does not end after BYE") from error
        if status != 7:
            raise Fault(f"the keeper ended with {status}, not with torpord's 7: {self.log()[-2000:]}")

    def end(self) -> None:
        self.leave()
        self.listener.close()
        for child in self.children:
            child.kill()
            child.wait()
        until = time.monotonic() + BOUND
        while (left := proc.marked(f"TORPOR_FUZZ={self.folder}")) and time.monotonic() < until:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if self.process is not None:
                self.process.poll()
            time.sleep(0.02)
        if self.process is not None:
            self.process.wait()
        if not self.options.keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def summary(self) -> str:
        return (f"keeper: {self.round} rounds, {self.steps} steps, {self.answers} answers, {self.launches} launches, "
                f"{self.deaths} torpords replaced; longest answer {self.longest * 1000:.0f} ms")  # fmt: skip


def waits(pid: int) -> float:
    """Seconds that the process and this one have waited for a CPU."""
    return proc.waited(pid) + proc.waited(os.getpid())
