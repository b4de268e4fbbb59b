# SPDX-License-Identifier: Apache-2.0
"""What of the protocol is the same with threads and with asyncio: what is said and what is remembered."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import tempfile
import weakref
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ._errors import InvalidParameter, NotSupervised, TorporError, error_of
from ._messages import Json, Message, Situation

#: The longest reply that is taken, in bytes.
LONGEST_REPLY = 4 << 20
#: What SaveState and SaveSnapshot take as data: 512 KiB of Base64.
LONGEST_DATA = 384 << 10
#: How long calls wait for the supervisor, in seconds; saving a state waits for a disk.
CALL_TIMEOUT = 10.0
SAVE_TIMEOUT = 60.0
#: How long a program that ends waits until its last answer is taken, in seconds.
LAST_ANSWER_TIMEOUT = 2.0
#: How long before the end of the time for tasks they expire, in seconds, if the supervisor is too old to say it: the
#: default of expiry_warning.
EXPIRY_WARNING = 5.0
#: The time for tasks is asked at least this often, in seconds: while the app is in the foreground it has no end.
EXPIRY_INTERVAL = 1.0

ALONE = [
    Message(1, "willFinishLaunching", None, {"options": {}}),
    Message(2, "didFinishLaunching", None, {"options": {}}),
    Message(3, "didBecomeActive", None, {}),
]


_sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def new_socket() -> socket.socket:
    """A socket for a connection to the supervisor, of which a forked child keeps no copy.

    With a copy, the connection of a process that has ended would be open for as long as its child runs: no other process
    could be the delegate, and its tasks would last."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    _sockets.add(connection)
    return connection


def _close_copies() -> None:
    for connection in list(_sockets):
        try:
            connection.close()
        except OSError:
            pass


os.register_at_fork(after_in_child=_close_copies)


def time_to_expiry(reply: Mapping[str, Any]) -> Optional[float]:
    """Seconds until the tasks have to come to an end, from a reply to BackgroundTime; None while nothing bounds them."""
    remaining, warning = reply.get("remaining_ms"), reply.get("expiry_warning_ms")
    if remaining is None:
        return None
    return float(remaining) / 1000 - (EXPIRY_WARNING if warning is None else float(warning) / 1000)


def pauses() -> Iterator[float]:
    """Seconds between attempts to connect."""
    pause = 0.01
    while True:
        yield pause
        pause = min(pause * 2, 1.0)


def call_bytes(member: str, parameters: Mapping[str, Any], more: bool = False) -> bytes:
    """A call as it goes over the wire."""
    call: Json = {
        "method": "io.torpor.App." + member,
        "parameters": {name: value for name, value in parameters.items() if value is not None},
    }
    if more:
        call["more"] = True
    # ASCII alone: what of a name cannot be UTF-8 (a lone surrogate) must not make the whole call invalid.
    return json.dumps(_clean(call), separators=(",", ":")).encode("ascii") + b"\0"


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {name: _clean(item) for name, item in value.items()}
    return value


def read_reply(data: bytes) -> Tuple[Mapping[str, Any], bool]:
    """A reply's parameters, and whether more follow. Raises what it says, and ValueError for what is no reply."""
    try:
        reply = json.loads(data.decode("utf-8"))
    except RecursionError:
        raise ValueError("a reply is nested too deeply") from None
    parameters = reply.get("parameters") if isinstance(reply, dict) else None
    if not isinstance(reply, dict) or not isinstance(parameters or {}, dict):
        raise ValueError("a reply is an object with parameters")
    error = reply.get("error")
    if error is not None:
        raise error_of(str(error), parameters or {})
    return parameters or {}, reply.get("continues") is True


class Session:
    """What a delegate has to remember to come back without losing or repeating a message."""

    def __init__(self) -> None:
        path = os.environ.get("TORPOR_APP_SOCKET")
        #: The socket's path, None without a supervisor.
        self.path: Optional[str] = path or None
        self.incarnation: Optional[int] = None
        self.after = 0
        #: Names by tokens.
        self.tasks: Dict[int, str] = {}
        self._own_tokens = 0
        #: A child that is forked has copies of the connections, over which the parent would get what it asks.
        self._process = os.getpid()

    @property
    def supervised(self) -> bool:
        return self.path is not None

    @property
    def is_of_this_process(self) -> bool:
        return os.getpid() == self._process

    def need_this_process(self) -> None:
        if not self.is_of_this_process:
            raise TorporError(
                f"This App belongs to process {self._process}, from which this one was forked: make one of its own, "
                "torpor.App()."
            )

    def forbidden(self, error: OSError) -> str:
        """What keeps this process from its supervisor, which waits for it: nothing else would say so."""
        return (
            f"{self.path} cannot be opened ({error.strerror}): this process is user {os.geteuid()}, and only the user that "
            "the app has in the configuration may open it. Set `user` there instead of changing it in the program."
        )

    def need_supervisor(self, what: str = "keep its state") -> str:
        """The socket's path; what says in an error for what it is needed."""
        self.need_this_process()
        if self.path is None:
            raise NotSupervised(f"The program runs without a supervisor, which would {what}.")
        return self.path

    def attach_call(self) -> bytes:
        if self.incarnation is None:
            return call_bytes("Attach", {}, more=True)
        return call_bytes(
            "Attach",
            {"incarnation": self.incarnation, "after": self.after, "tasks": sorted(self.tasks)},
            more=True,
        )

    def took(self, situation: Situation) -> None:
        """The first reply to Attach."""
        if situation.incarnation != self.incarnation:
            self.incarnation = situation.incarnation
            self.after = 0

    def is_new(self, message: Message) -> bool:
        """Notes a message; false for one that came before."""
        if message.id <= self.after:
            return False
        self.after = message.id
        return True

    def own_token(self) -> int:
        """For a task of a program without a supervisor."""
        self._own_tokens += 1
        return self._own_tokens

    @staticmethod
    def final_answer(message: Message, failed: Optional[str], unhandled: bool) -> Json:
        """The answer that is not pending."""
        if failed is not None:
            if unhandled:
                raise ValueError("a message has either failed or is unhandled")
            return Session.answer(message, "failed", failed)
        return Session.answer(message, "unhandled" if unhandled else "done")

    @staticmethod
    def answer(
        message: Message, result: str, text: Optional[str] = None, expected: Optional[float] = None
    ) -> Json:
        if expected is not None and (isinstance(expected, bool) or not isinstance(expected, (int, float))):
            raise TypeError(f"pending takes the seconds that the answer takes, a number such as 20, and not {expected!r}")
        declines: Optional[List[str]] = list(message.declined) or None
        return {
            "id": message.id,
            "result": result,
            "text": text,
            "expected_ms": None if expected is None else max(0, round(expected * 1000)),
            "declines": None if result == "pending" else declines,
            "fetch": None if result == "pending" else message.found,
        }


def heartbeat_interval() -> Optional[float]:
    """Seconds between two heartbeats, half of what the app's ``watchdog`` allows; None if this process sends none."""
    process, allowed = os.environ.get("WATCHDOG_PID"), os.environ.get("WATCHDOG_USEC", "")
    if process not in (None, "", str(os.getpid())) or not os.environ.get("NOTIFY_SOCKET"):
        return None
    # More digits than a count of microseconds has are no count.
    if not re.fullmatch("[0-9]{1,18}", allowed) or int(allowed) == 0:
        return None
    return int(allowed) / 2_000_000


def new_token() -> str:
    """Names a request, so that it is carried out once, also where it is asked again over another connection."""
    return os.urandom(8).hex()


def post_parameters(
    app: str, topic: str, payload: Any, coalesce: Optional[str], key: Optional[str], urgent: Optional[bool]
) -> Json:
    """The parameters of Post, with a new token. Raises InvalidParameter for a payload that cannot be JSON in UTF-8."""
    try:
        json.dumps(payload, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidParameter(f"the payload cannot be posted: {error}") from None
    given = {"app": app, "topic": topic, "payload": payload, "coalesce": coalesce, "key": key, "urgent": urgent}
    return {"token": new_token(), **{name: value for name, value in given.items() if value is not None}}


def subscribe_parameters(
    topic: str, coalesce: Optional[str], urgent: Optional[bool], wake: Optional[str], keep: Optional[bool]
) -> Json:
    """The parameters of Subscribe."""
    given = {"topic": topic, "coalesce": coalesce, "urgent": urgent, "wake": wake, "keep": keep}
    return {name: value for name, value in given.items() if value is not None}


def take_parameters(max: Optional[int], keep: bool, done: Sequence[int], only: Sequence[int]) -> Json:
    """The parameters of Take."""
    given = {"max": max, "keep": keep or None, "done": list(done) or None, "only": list(only) or None}
    return {name: value for name, value in given.items() if value is not None}


@contextmanager
def state_parameters(data: bytes) -> Iterator[Json]:
    """The parameters of SaveState and SaveSnapshot for bytes: what is large goes through a file for the moment of the call."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(
            f"the data to save must be bytes, not {type(data).__qualname__}: use json.dumps(…).encode() for a dict "
            "or a list, .encode() for a str"
        )
    data = bytes(data)
    if len(data) <= LONGEST_DATA:
        yield {"data": base64.b64encode(data).decode("ascii")}
        return
    directory = os.environ.get("TORPOR_STATE_DIRECTORY")
    if not directory:
        raise NotSupervised(f"{len(data)} bytes have to go through a file, but TORPOR_STATE_DIRECTORY is not set.")
    with tempfile.NamedTemporaryFile(prefix=".torpor-state-", dir=directory) as file:
        file.write(data)
        file.flush()
        yield {"file": os.path.basename(file.name)}
