# SPDX-License-Identifier: Apache-2.0
"""What an app overrides."""

from __future__ import annotations

import difflib
import warnings
from typing import Any, Callable, Dict, Optional

from ._messages import Message, Situation


class Later:
    """The type of LATER."""

    def __repr__(self) -> str:
        return "torpor.LATER"


#: What a method returns when app.answer will say how it went, before the deadline.
LATER = Later()


class Delegate:
    """What an app hears: a method a message, each of which may be overridden.

    A method that returns answers ``done``; one that raises answers ``failed`` with the exception's text; one that
    returns LATER leaves the answer to ``app.answer(message)``. With torpor.aio.App they may be coroutines.

    A method whose name is almost that of one of these is probably misspelled and would never be called: a warning says so.
    """

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        for name, value in vars(cls).items():
            if callable(value) and not name.startswith("_") and not hasattr(Delegate, name):
                meant = _meant(name)
                if meant is not None:
                    warnings.warn(
                        f"{cls.__qualname__}.{name} is never called: did you mean {meant}?", stacklevel=2
                    )

    def attached(self, situation: Situation) -> Any:
        """Before the first message, and again when the supervisor was replaced: how the app is. Not to be answered."""

    def will_finish_launching(self, message: Message) -> Any:
        """The app was launched: message.options says why. It may decline "restoration" and "url"."""

    def restore_state(self, message: Message) -> Any:
        """There is an archive of an earlier run: message.read_state()."""

    def did_finish_launching(self, message: Message) -> Any:
        """The last message of a launch: who answers it is ready."""

    def open_url(self, message: Message) -> Any:
        """message.url is to be opened."""

    def did_become_active(self, message: Message) -> Any:
        """The app is in use."""

    def will_resign_active(self, message: Message) -> Any:
        """It is no longer, perhaps only for a moment."""

    def did_enter_background(self, message: Message) -> Any:
        """The app is out of use and may be stopped and evicted: the time to save its state. It may decline "snapshot"."""

    def will_enter_foreground(self, message: Message) -> Any:
        """It comes back."""

    def resumed(self, message: Message) -> Any:
        """It was stopped for message.gap seconds, and runs again."""

    def task_expiring(self, message: Message) -> Any:
        """The time of a background task is almost up; its own expiry handler is called before this."""

    def did_receive_memory_warning(self, message: Message) -> Any:
        """Memory is short: caches are to be dropped."""

    def settings_did_change(self, message: Message) -> Any:
        """The app's configuration was changed."""

    def perform_fetch(self, message: Message) -> Any:
        """It is time to look for new content: message.fetched("new-data"), "no-data" or "failed" says what there was."""

    def will_terminate(self, message: Message) -> Any:
        """The app is ended: SIGTERM follows."""

    def other(self, message: Message) -> Any:
        """Every message that this version of the library has no method for."""

    def problem(self, sentence: str) -> None:
        """Something went wrong that the library goes on after."""


_METHODS: Dict[str, str] = {
    "willFinishLaunching": "will_finish_launching",
    "restoreState": "restore_state",
    "didFinishLaunching": "did_finish_launching",
    "openURL": "open_url",
    "didBecomeActive": "did_become_active",
    "willResignActive": "will_resign_active",
    "didEnterBackground": "did_enter_background",
    "willEnterForeground": "will_enter_foreground",
    "resumed": "resumed",
    "taskExpiring": "task_expiring",
    "didReceiveMemoryWarning": "did_receive_memory_warning",
    "settingsDidChange": "settings_did_change",
    "performFetch": "perform_fetch",
    "willTerminate": "will_terminate",
}


def _meant(name: str) -> Optional[str]:
    """The method of a delegate that a name was probably meant to be."""
    if name in _METHODS:
        return _METHODS[name]
    # Words such as "resume" are names of their own.
    known = [method for method in _METHODS.values() if "_" in method]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
    return close[0] if close and "_" in name else None


def method_of(delegate: Delegate, message: Message) -> Callable[[Message], Any]:
    """The method for a message."""
    method: Callable[[Message], Any] = getattr(delegate, _METHODS.get(message.name, "other"))
    return method
