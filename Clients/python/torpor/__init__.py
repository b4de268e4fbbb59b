# SPDX-License-Identifier: Apache-2.0
"""For programs that know their lifecycle under Torpor.

An app has a delegate, whose methods are called with the messages of the lifecycle, one at a time, in order, each once,
also when the supervisor is replaced or restarted meanwhile::

    import torpor

    class Notes(torpor.Delegate):
        def restore_state(self, message):
            self.notes = json.loads(message.read_state())

        def did_enter_background(self, message):
            message.app.save_state(json.dumps(self.notes).encode())

        will_terminate = did_enter_background

    with torpor.App(Notes()) as app:
        with app.background_task("upload"):
            ...

`torpor.App` has threads of its own; `torpor.aio.App` is for asyncio, with the same methods as coroutines. A program that
nobody supervises hears the launch messages all the same, and its tasks have no limit; only states cannot be kept.
"""

from ._delegate import LATER, UNHANDLED, Delegate, Later, Unhandled
from ._errors import (
    AlreadyAnswered,
    AlreadyAttached,
    Failed,
    InvalidParameter,
    MailboxFull,
    NotInFlight,
    NoHandler,
    NotPermitted,
    NotSubscribed,
    NotSupervised,
    SupervisorGone,
    TaskExpired,
    TooLarge,
    TorporError,
    UnknownApp,
    UnknownTask,
)
from ._messages import Declinable, Fetched, MemoryLevel, Message, Situation, launch_options, notify
from .threads import App, BackgroundTask

#: The version of this library: that of Torpor.
__version__ = "0.2.0"

__all__ = [
    "AlreadyAnswered",
    "AlreadyAttached",
    "App",
    "BackgroundTask",
    "Declinable",
    "Delegate",
    "Fetched",
    "Failed",
    "InvalidParameter",
    "LATER",
    "Later",
    "MailboxFull",
    "MemoryLevel",
    "Message",
    "NotInFlight",
    "NoHandler",
    "NotPermitted",
    "NotSubscribed",
    "NotSupervised",
    "Situation",
    "SupervisorGone",
    "TaskExpired",
    "TooLarge",
    "TorporError",
    "UNHANDLED",
    "Unhandled",
    "UnknownApp",
    "UnknownTask",
    "launch_options",
    "notify",
]
