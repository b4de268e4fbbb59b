# SPDX-License-Identifier: Apache-2.0
"""What a supervisor can say instead of a reply, as exceptions."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Type


class TorporError(Exception):
    """Base of all that this library raises; its text is a sentence."""

    def __init__(self, message: str, parameters: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.parameters: Mapping[str, Any] = parameters or {}


class NotSupervised(TorporError):
    """There is no supervisor: the program was started by somebody else."""


class SupervisorGone(TorporError):
    """The supervisor did not answer in time, also not over a new connection."""


class NotPermitted(TorporError):
    """The caller is no process of the app, or its configuration does not allow that."""


class AlreadyAttached(TorporError):
    """Another process of the app is its delegate."""


class NotInFlight(TorporError):
    """The message is not the one that waits for an answer: its deadline is over."""


class AlreadyAnswered(TorporError):
    """The message was answered before."""


class UnknownTask(TorporError):
    """There is no such task, or it has ended."""


class NoHandler(TorporError):
    """No app opens the URL."""


class UnknownApp(TorporError):
    """There is no such app."""


class NotSubscribed(TorporError):
    """The other app does not accept messages of the topic."""


class MailboxFull(TorporError):
    """The other app's mailbox is full."""


class TooLarge(TorporError):
    """The archive has more bytes than the app may keep."""

    @property
    def limit(self) -> int:
        """The app's state_limit, in bytes."""
        return int(self.parameters.get("limit", 0))


class Failed(TorporError):
    """The supervisor could not do it; the text says why."""


class InvalidParameter(TorporError):
    """The supervisor does not take a parameter of a call."""


class TaskExpired(TorporError):
    """The time of a background task was up before its work was done."""


def failure(error: BaseException) -> str:
    """What the answer ``failed`` says of an exception: its type and text; of a TorporError, which is a sentence, the text."""
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception:
        # An exception of the app whose own text fails.
        text = ""
    if not text:
        return kind
    return text if isinstance(error, TorporError) else f"{kind}: {text}"


_BY_NAME: Dict[str, Type[TorporError]] = {
    kind.__name__: kind
    for kind in (
        NotPermitted, AlreadyAttached, NotInFlight, AlreadyAnswered, UnknownTask, NoHandler, UnknownApp, NotSubscribed,
        MailboxFull, TooLarge, Failed, InvalidParameter,
    )
}


def error_of(name: str, parameters: Mapping[str, Any]) -> TorporError:
    """The exception for an error of a reply, by its full name."""
    kind = _BY_NAME.get(name.rpartition(".")[2], TorporError)
    return kind(str(parameters.get("message", name)), parameters)
