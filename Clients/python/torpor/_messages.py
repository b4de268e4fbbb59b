# SPDX-License-Identifier: Apache-2.0
"""Messages, and what else a supervisor says of an app."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, List, Literal, Mapping, Optional, get_args

Json = Dict[str, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
#: What an app may decline of what it is offered: "url" and "restoration" in answers to launch messages, "restoration" in
#: one to sceneWillConnect, "snapshot" in one to didEnterBackground or sceneDidEnterBackground.
Declinable = Literal["url", "restoration", "snapshot"]
#: How short memory is: that of the machine ("warning", "critical"), or that of the app within its own limit.
MemoryLevel = Literal["warning", "critical", "limit"]
#: What an app found that looked for new content.
Fetched = Literal["new-data", "no-data", "failed"]


def _need(word: str, words: Any, method: str) -> None:
    """A wrong word would have the whole answer refused."""
    if word not in get_args(words):
        known = ", ".join(f'"{each}"' for each in get_args(words))
        raise ValueError(f"{method}({word!r}): it takes {known}")


def _text(value: Any) -> Optional[str]:
    return value if isinstance(value, str) else None


def _texts(value: Any) -> List[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _integer(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _moment(value: Any) -> Optional[datetime]:
    """Of microseconds since 1970, in UTC."""
    microseconds = _integer(value)
    try:
        return _EPOCH + timedelta(microseconds=microseconds) if microseconds else None
    except OverflowError:
        return None


@dataclass
class Message:
    """Something that the app is told."""

    #: Counts the messages of this run of the app, from 1.
    id: int
    #: As the lifecycle names it, such as didEnterBackground.
    name: str
    #: The time for the answer in seconds, None without a bound.
    deadline: Optional[float]
    parameters: Mapping[str, Any]
    #: The torpor.App or torpor.aio.App that it came to.
    app: Any = field(repr=False, compare=False, default=None)
    declined: List[str] = field(default_factory=list, compare=False)
    found: Optional[str] = field(default=None, compare=False)

    @classmethod
    def read(cls, value: Any) -> Message:
        """Reads it from its JSON; ValueError for what is none."""
        if not isinstance(value, dict):
            raise ValueError("a message is an object")
        number, name, deadline = value.get("id"), value.get("name"), value.get("deadline_ms")
        if not isinstance(number, int) or isinstance(number, bool) or number <= 0 or not isinstance(name, str):
            raise ValueError("a message has an id and a name")
        parameters = value.get("parameters")
        return cls(
            number,
            name,
            deadline / 1000 if isinstance(deadline, (int, float)) else None,
            parameters if isinstance(parameters, dict) else {},
        )

    def decline(self, *what: Declinable) -> None:
        """Says with the answer what the app does not want."""
        for each in what:
            _need(each, Declinable, "decline")
        self.declined += what

    def fetched(self, what: Fetched) -> None:
        """Says with the answer to performFetch what the app found: the next time is chosen by it."""
        _need(what, Fetched, "fetched")
        self.found = what

    @property
    def options(self) -> Mapping[str, Any]:
        """Why the app was launched (willFinishLaunching, didFinishLaunching); how a scene connects (sceneWillConnect)."""
        options = self.parameters.get("options")
        return options if isinstance(options, dict) else {}

    @property
    def path(self) -> Optional[str]:
        """Where the state archive is (restoreState, sceneWillConnect); the file that changed (settingsDidChange,
        identityDidChange) or was transferred (transferDidFinish)."""
        state = self.parameters.get("state")
        of_scene = _text(state.get("path")) if isinstance(state, dict) else None
        return _text(self.parameters.get("path")) or of_scene or _text(self._news.get("path"))

    @property
    def scene(self) -> Optional[str]:
        """The name of the scene inside the app (sceneWillConnect and the like); of the scene that the app itself is
        (willFinishLaunching, didFinishLaunching). None where there is none."""
        return _text(self.parameters.get("scene")) or _text(self.options.get("scene"))

    @property
    def scene_session(self) -> Optional[Mapping[str, Any]]:
        """The object that the scene was opened with (sceneWillConnect, willFinishLaunching, didFinishLaunching)."""
        session = self.options.get("session")
        return session if isinstance(session, dict) else None

    @property
    def discarded(self) -> List[str]:
        """The names of the scenes that no longer exist (didDiscardScenes)."""
        return _texts(self._news.get("names"))

    @property
    def url(self) -> Optional[str]:
        """What to open (openURL); what stands for the activity (continueActivity); where a transfer is from or to
        (transferDidFinish, transferNeedsLogin)."""
        return self.parameters.get("url")

    @property
    def source(self) -> Optional[str]:
        """The app that opened the URL; None for a person (openURL). The app whose activity it is; None for one of another
        machine (continueActivity)."""
        return self.parameters.get("source")

    @property
    def media_type(self) -> Optional[str]:
        """The media type of the file to open, such as "text/markdown"; None for anything else (openURL)."""
        return self.parameters.get("type")

    @property
    def gap(self) -> float:
        """How long the app was stopped, in seconds (resumed)."""
        return float(self.parameters.get("gap_s") or 0)

    @property
    def reason(self) -> Optional[str]:
        """Why the app is ended (willTerminate), or the activity does not come (didFailToContinueActivity)."""
        return self.parameters.get("reason")

    @property
    def level(self) -> MemoryLevel:
        """How short memory is (didReceiveMemoryWarning); what this library does not know counts as "warning"."""
        level = self.parameters.get("level")
        return "critical" if level == "critical" else "limit" if level == "limit" else "warning"

    @property
    def token(self) -> int:
        """The background task's (taskExpiring)."""
        return _integer(self.parameters.get("token"))

    @property
    def task(self) -> Optional[str]:
        """The background task's name (taskExpiring)."""
        return _text(self.parameters.get("name"))

    @property
    def remaining(self) -> Optional[float]:
        """How many seconds the app may still run for its tasks (taskExpiring)."""
        remaining = self.parameters.get("remaining_ms")
        return remaining / 1000 if isinstance(remaining, (int, float)) else None

    @property
    def session(self) -> Optional[str]:
        """What the transfer belongs with (handleEventsForBackgroundTransfer, transferDidFinish, transferNeedsLogin)."""
        return _text(self.parameters.get("session"))

    @property
    def transfer(self) -> int:
        """The number of the transfer (transferDidFinish, transferNeedsLogin)."""
        return _integer(self.parameters.get("transfer"))

    @property
    def error(self) -> Optional[str]:
        """Why the transfer failed; None where the file is there (transferDidFinish)."""
        return _text(self.parameters.get("error"))

    @property
    def alert(self) -> Optional[str]:
        """The app's name for the alert (didReceiveLocalNotification)."""
        return _text(self.parameters.get("alert"))

    @property
    def scheduled_at(self) -> Optional[datetime]:
        """For when the alert was scheduled (didReceiveLocalNotification)."""
        return _moment(self.parameters.get("scheduled_at"))

    @property
    def action(self) -> Optional[str]:
        """What a person chose: "default" for the alert itself, or the id of an action; None where it came
        (didReceiveLocalNotification)."""
        return _text(self.parameters.get("action"))

    @property
    def activation_token(self) -> Optional[str]:
        """What a window manager wants to see before it raises the app's window (didReceiveLocalNotification)."""
        return _text(self.parameters.get("activation_token"))

    @property
    def changed(self) -> List[str]:
        """The settings' names (settingsDidChange, identityDidChange); empty where a file changed: path."""
        return _texts(self._news.get("changed"))

    @property
    def names(self) -> List[str]:
        """What must be refreshed (refresh); "*" stands for everything."""
        return _texts(self._news.get("names"))

    @property
    def activity_type(self) -> str:
        """The kind of the activity, such as "org.example.note" (willContinueActivity and the like)."""
        return _text(self.parameters.get("type")) or ""

    @property
    def title(self) -> str:
        """What people see of the activity (continueActivity)."""
        return _text(self.parameters.get("title")) or ""

    @property
    def continued_by(self) -> Optional[str]:
        """The app that goes on with the activity (activityWasContinued)."""
        return _text(self.parameters.get("by"))

    @property
    def clock_was_set(self) -> bool:
        """Whether the clock was set (significantTimeChange)."""
        return self._news.get("clock") is True

    @property
    def time_zone(self) -> Optional[str]:
        """The time zone, such as Europe/Berlin, where it is another one (significantTimeChange)."""
        return _text(self._news.get("time_zone"))

    @property
    def utc_offset(self) -> Optional[int]:
        """How far local time is from UTC, in seconds to the east, where that changed (significantTimeChange)."""
        offset = self._news.get("utc_offset_s")
        return offset if isinstance(offset, int) and not isinstance(offset, bool) else None

    @property
    def day(self) -> Optional[str]:
        """The day, such as 2026-11-23, where it is another one (significantTimeChange)."""
        return _text(self._news.get("day"))

    @property
    def _news(self) -> Mapping[str, Any]:
        """The payload where it is an object."""
        payload = self.parameters.get("payload")
        return payload if isinstance(payload, dict) else {}

    @property
    def topic(self) -> Optional[str]:
        """What it is about, of what waited in the app's mailbox (didReceiveEvent and the like)."""
        return self.parameters.get("topic")

    @property
    def key(self) -> Optional[str]:
        """What of the topic it is about."""
        return self.parameters.get("key")

    @property
    def payload(self) -> Any:
        """What it says."""
        return self.parameters.get("payload")

    @property
    def sender(self) -> Optional[str]:
        """Whom it comes from."""
        return self.parameters.get("sender")

    @property
    def count(self) -> int:
        """How many became one in it."""
        return _integer(self.parameters.get("count")) or 1

    @property
    def mail_id(self) -> int:
        """The number of what waited in the app's mailbox, which no other has: each is told once."""
        return _integer(self.parameters.get("id"))

    @property
    def first_at(self) -> Optional[datetime]:
        """When the first of those came that became one in it."""
        return _moment(self.parameters.get("first_at"))

    @property
    def last_at(self) -> Optional[datetime]:
        """When the last of them came."""
        return _moment(self.parameters.get("last_at"))

    def read_state(self) -> bytes:
        """The state archive's bytes (restoreState, sceneWillConnect)."""
        if self.path is None:
            if self.name == "sceneWillConnect":
                raise ValueError(f"the scene {self.scene} has no state archive: look whether message.path is None")
            raise ValueError(f"{self.name} has no state archive: only restoreState and sceneWillConnect do")
        with open(self.path, "rb") as archive:
            return archive.read()


@dataclass(frozen=True)
class Situation:
    """The state of the app."""

    app: str
    incarnation: int
    state: str
    transition: Optional[str]
    options: Mapping[str, Any]
    #: The background tasks' names by their tokens.
    tasks: Mapping[int, str]
    #: The states of the connected scenes inside the app ("inactive", "active", "background") by their names.
    scenes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Situation:
        """Reads it from its JSON; ValueError for what is none."""
        try:
            return cls(
                str(value.get("app") or ""),
                int(value.get("incarnation") or 0),
                str(value.get("state") or ""),
                value.get("transition"),
                value.get("options") or {},
                {int(task["token"]): str(task["name"]) for task in value.get("tasks") or []},
                {str(scene["name"]): str(scene["state"]) for scene in value.get("scenes") or []},
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"the state of the app cannot be read: {error}") from None


def launch_options() -> Json:
    """Why the program was launched (TORPOR_LAUNCH_OPTIONS); empty without a supervisor."""
    try:
        options = json.loads(os.environ.get("TORPOR_LAUNCH_OPTIONS", "{}"))
    except ValueError:
        return {}
    return options if isinstance(options, dict) else {}


def notify(state: str) -> bool:
    """Sends a datagram of the sd_notify protocol, such as "STATUS=Reading" or "WATCHDOG=1"; whether somebody hears."""
    return _send(state, 0)


def heartbeat() -> None:
    """Sends WATCHDOG=1. Does not wait: where the datagram has no room, earlier heartbeats are still unread."""
    try:
        _send("WATCHDOG=1", socket.MSG_DONTWAIT)
    except OSError:
        # The supervisor is being replaced: the next heartbeat is sent to the new one.
        pass


def _send(state: str, flags: int) -> bool:
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.sendto(state.encode(), flags, "\0" + path[1:] if path.startswith("@") else path)
    return True
