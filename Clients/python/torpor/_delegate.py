# SPDX-License-Identifier: Apache-2.0
"""What an app overrides."""

from __future__ import annotations

import difflib
import functools
import inspect
import logging
import signal
import warnings
from types import CodeType, FrameType
from typing import Any, Callable, Dict, List, Optional, Tuple

from ._errors import failure
from ._messages import Message, Situation

_log = logging.getLogger("torpor")


class Later:
    """The type of LATER."""

    def __repr__(self) -> str:
        return "torpor.LATER"


#: What a method returns when app.answer will say how it went, before the deadline.
LATER = Later()


class Unhandled:
    """The type of UNHANDLED."""

    def __repr__(self) -> str:
        return "torpor.UNHANDLED"


#: What a method returns that has no use for what came: the supervisor may tell another app.
UNHANDLED = Unhandled()


class Delegate:
    """What an app hears: a method a message, each of which may be overridden.

    A method that returns answers ``done``; one that returns LATER leaves the answer to ``app.answer(message)``, one that
    returns UNHANDLED answers ``unhandled``: of a URL and of what waited in the app's mailbox another app may be told. With
    torpor.aio.App they may be coroutines.

    A method that raises answers ``failed`` with the exception's type and text, "KeyError: 'x'", or with the text alone if it
    is a TorporError. CancelledError is an exception like the others. SystemExit, as of sys.exit(), and KeyboardInterrupt
    end the program once the message is answered, ``done`` for the status 0 and else ``failed``. But sceneWillConnect and
    messages from the app's mailbox are answered only for the status 0: otherwise they come again in the next run. A
    SystemExit that the handler of a signal raises in the middle of a method answers nothing.

    ``failed`` is an answer: a message from the mailbox is not told again after it. Return UNHANDLED to have it kept for
    people (``torpor unhandled --replay`` tells it again).

    An app with scenes inside (``scenes = { inside = true }``) is told did_become_active, will_resign_active,
    did_enter_background and will_enter_foreground for each scene, by the methods that begin with scene, and never for
    itself. message.scene is the scene's name.

    The methods of what waited in the app's mailbox, from settings_did_change on, call ``other`` unless they are overridden,
    and that returns UNHANDLED.

    A method whose name is almost that of one of these is probably misspelled and would never be called: a warning says so.
    So does one for a method that cannot be called with the message alone. What of the mailbox it is called for is answered
    ``unhandled``, and so is a URL; other messages are answered ``failed``.
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
        """The last message of a launch, after restore_state: who answers it is ready. A server accepts clients from here on."""

    def open_url(self, message: Message) -> Any:
        """message.url is to be opened."""
        return UNHANDLED

    def did_become_active(self, message: Message) -> Any:
        """The app is in use."""

    def will_resign_active(self, message: Message) -> Any:
        """It is no longer, perhaps only for a moment."""

    def did_enter_background(self, message: Message) -> Any:
        """The app is out of use and may be stopped and evicted: the time to save its state. It may decline "snapshot".

        Comes again before the app is stopped after an event woke it in the background.
        """

    def will_enter_foreground(self, message: Message) -> Any:
        """It comes back."""

    def resumed(self, message: Message) -> Any:
        """It was stopped for message.gap seconds, and runs again."""

    def task_expiring(self, message: Message) -> Any:
        """The time of a background task is almost up; its own expiry handler is called before this.

        message.task and .token say which, message.remaining how many seconds are left.
        """

    def did_receive_memory_warning(self, message: Message) -> Any:
        """Memory is short: caches are to be dropped. message.level says how short, "warning", "critical" or "limit"."""

    def perform_fetch(self, message: Message) -> Any:
        """It is time to look for new content: message.fetched("new-data"), "no-data" or "failed" says what there was."""

    def will_terminate(self, message: Message) -> Any:
        """The app is ended: SIGTERM follows. The time to save its state, which was in use if the machine is shut down."""

    def scene_will_connect(self, message: Message) -> Any:
        """A scene inside the app connects: message.scene_session, .options["foreground"] and .options["new"] say how.

        If message.path is not None, message.read_state() is what the scene saved of itself; declining "restoration" keeps
        it for the next time. If this raises, the scene is not connected, and the error is reported to the client that
        opened it. With scenes.cgroups, .options["cgroup"] is the directory of the scene's cgroup, for processes that work
        for it.
        """

    def scene_did_become_active(self, message: Message) -> Any:
        """message.scene is in use."""

    def scene_will_resign_active(self, message: Message) -> Any:
        """message.scene is no longer in use, perhaps only for a moment."""

    def scene_did_enter_background(self, message: Message) -> Any:
        """message.scene is out of use: save its state, save_state(data, scene=message.scene). It may decline "snapshot"."""

    def scene_will_enter_foreground(self, message: Message) -> Any:
        """message.scene comes back."""

    def scene_did_disconnect(self, message: Message) -> Any:
        """message.scene is disconnected: free what it holds. It may connect again later, with its session and state."""

    def settings_did_change(self, message: Message) -> Any:
        """The app's settings changed: message.changed has their names, message.path the file, one of settings_files."""
        return self.other(message)

    def identity_did_change(self, message: Message) -> Any:
        """Another account is the app's: message.changed names the settings, message.path the file of identity_files."""
        return self.other(message)

    def refresh(self, message: Message) -> Any:
        """The app comes to the foreground: message.names must be refreshed first; "*" stands for everything."""
        return self.other(message)

    def will_continue_activity(self, message: Message) -> Any:
        """An activity of the type message.activity_type follows: what a person did in another app or on another machine."""
        return self.other(message)

    def continue_activity(self, message: Message) -> Any:
        """message.activity_type, .title, .payload and .url say what a person did in the app message.source, or, if that is
        None, on another machine: go on with it."""
        return self.other(message)

    def did_fail_to_continue_activity(self, message: Message) -> Any:
        """The activity that was announced does not come: message.reason says why."""
        return self.other(message)

    def activity_was_continued(self, message: Message) -> Any:
        """The app message.continued_by goes on with this app's activity."""
        return self.other(message)

    def significant_time_change(self, message: Message) -> Any:
        """The clock was set (message.clock_was_set), or message.time_zone, .utc_offset or .day is another one."""
        return self.other(message)

    def protected_data_will_become_unavailable(self, message: Message) -> Any:
        """The session was locked: files that its user's key opens cannot be read until it is unlocked."""
        return self.other(message)

    def protected_data_did_become_available(self, message: Message) -> Any:
        """The session was unlocked."""
        return self.other(message)

    def handle_events_for_background_transfer(self, message: Message) -> Any:
        """All transfers of message.session are over, or one waits for a login: what became of them follows."""
        return self.other(message)

    def transfer_did_finish(self, message: Message) -> Any:
        """message.transfer is over: message.path is there, or message.error says why it is not."""
        return self.other(message)

    def transfer_needs_login(self, message: Message) -> Any:
        """A server asks who the app is: answer_login(message.transfer, user, password)."""
        return self.other(message)

    def did_receive_local_notification(self, message: Message) -> Any:
        """An alert came while the app was in the foreground, or a person answered it: message.alert, .action, .payload."""
        return self.other(message)

    def did_discard_scenes(self, message: Message) -> Any:
        """The scenes message.discarded no longer exist: remove what the app keeps of them."""
        return self.other(message)

    def did_receive_event(self, message: Message) -> Any:
        """Something was posted to the app, or a timer or a file of it: message.topic, .payload, .key, .sender, .count."""
        return self.other(message)

    def did_receive_notification(self, message: Message) -> Any:
        """As did_receive_event, of the machine or the session: power, screens, languages."""
        return self.other(message)

    def did_receive_remote_notification(self, message: Message) -> Any:
        """As did_receive_event, from outside of the machine, by torpor-gateway."""
        return self.other(message)

    def other(self, message: Message) -> Any:
        """Every message that has no method above, and what those of the mailbox are told that are not overridden."""
        return UNHANDLED

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
    "sceneWillConnect": "scene_will_connect",
    "sceneDidBecomeActive": "scene_did_become_active",
    "sceneWillResignActive": "scene_will_resign_active",
    "sceneDidEnterBackground": "scene_did_enter_background",
    "sceneWillEnterForeground": "scene_will_enter_foreground",
    "sceneDidDisconnect": "scene_did_disconnect",
    "didDiscardScenes": "did_discard_scenes",
    "didReceiveEvent": "did_receive_event",
    "didReceiveNotification": "did_receive_notification",
    "didReceiveRemoteNotification": "did_receive_remote_notification",
    "refresh": "refresh",
    "willContinueActivity": "will_continue_activity",
    "continueActivity": "continue_activity",
    "didFailToContinueActivity": "did_fail_to_continue_activity",
    "activityWasContinued": "activity_was_continued",
    "significantTimeChange": "significant_time_change",
    "identityDidChange": "identity_did_change",
    "protectedDataWillBecomeUnavailable": "protected_data_will_become_unavailable",
    "protectedDataDidBecomeAvailable": "protected_data_did_become_available",
    "handleEventsForBackgroundTransfer": "handle_events_for_background_transfer",
    "transferDidFinish": "transfer_did_finish",
    "transferNeedsLogin": "transfer_needs_login",
    "didReceiveLocalNotification": "did_receive_local_notification",
}


#: What is passed to a method that is not for a message.
_ARGUMENTS = {"attached": "situation", "problem": "sentence"}

#: What another app may be told instead; the others concern the app alone.
_FOR_OTHERS = ("openURL", "continueActivity", "didReceiveEvent", "didReceiveNotification", "didReceiveRemoteNotification")


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
    if _is_for_others(message) and not _takes_one(method):
        # A TypeError would answer "failed", and the message would be lost.
        _log.error("%s is not handled: its method cannot be called with the message alone.", message.name)
        return _unhandled
    return method


def _is_for_others(message: Message) -> bool:
    return message.name in _FOR_OTHERS or message.name not in _METHODS


def _unhandled(message: Message) -> Any:
    return UNHANDLED


def _takes_one(method: Callable[..., Any]) -> bool:
    """Whether a method can be called with one argument, as far as Python can say before the call."""
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True


def checked(delegate: Optional[Delegate], app: str, *, coroutines: bool) -> Delegate:
    """An app's delegate, TypeError for what cannot be one."""
    if delegate is None:
        return Delegate()
    if isinstance(delegate, type):
        raise TypeError(f"{app} takes a delegate, not its class: write {app}({delegate.__qualname__}())")
    if not isinstance(delegate, Delegate):
        raise TypeError(f"{app} takes an object of a class derived from torpor.Delegate, not {_kind(delegate)}")
    if not coroutines:
        for name in ("attached", *_METHODS.values(), "other", "problem"):
            if inspect.iscoroutinefunction(getattr(delegate, name)):
                raise TypeError(
                    f"{type(delegate).__qualname__}.{name} is a coroutine (async def), which {app} does not await: "
                    "use torpor.aio.App"
                )
    for name in ("attached", *_METHODS.values(), "other", "problem"):
        method = getattr(delegate, name)
        if not _takes_one(method):
            warnings.warn(
                f"{type(delegate).__qualname__}.{name}{inspect.signature(method)} cannot be called: it must take one argument, "
                f"the {_ARGUMENTS.get(name, 'message')}, besides self",
                stacklevel=3,
            )
    return delegate


def result_of(returned: Any, message: Message) -> Optional[str]:
    """The answer that a method of a delegate returned; None for LATER, TypeError for what means nothing."""
    if returned is LATER:
        return None
    if returned is None:
        return "done"
    if returned is UNHANDLED:
        return "unhandled" if _is_for_others(message) else "done"
    if inspect.iscoroutine(returned):
        returned.close()
        raise TypeError(f"the method for {message.name} returned a coroutine, which torpor.App does not await: use torpor.aio.App")
    raise TypeError(
        f"the method for {message.name} returned {returned!r}: return nothing when it is done, torpor.UNHANDLED when another "
        "app may be told, torpor.LATER to answer later, and raise an exception when it failed"
    )


def last_answer(error: BaseException, message: Message) -> Optional[Tuple[str, Optional[str]]]:
    """How a message is answered whose method ended the program: a result and its text, or None if it is not.

    With ``failed``, mail would be lost and a scene's session be deleted. Without an answer they come again in the next
    run."""
    if isinstance(error, SystemExit):
        # SIGTERM came in the middle of the method: how far that was, only the program knows.
        if _comes_from_signal_handler(error):
            return None
        if error.code in (None, 0):
            return "done", None
    return None if message.mail_id or message.name == "sceneWillConnect" else ("failed", failure(error))


def _comes_from_signal_handler(error: BaseException) -> bool:
    """Whether a handler of a signal raised an exception, and not the code that the signal interrupted.

    A handler is called with the signal's number and the frame that it interrupts, which is the one before it in the
    traceback. One that has deleted its arguments is known by its code while it is installed."""
    installed = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()}
    before: Optional[FrameType] = None
    at = error.__traceback__
    while at is not None:
        frame = at.tb_frame
        arguments = _arguments(frame)
        if before is not None and (any(argument is before for argument in arguments) or (
            frame.f_code in installed and any(argument is _DELETED for argument in arguments)
        )):
            return True
        before, at = frame, at.tb_next
    return False


_DELETED = object()


def _arguments(frame: FrameType) -> List[Any]:
    """What a function was called with, as far as it has not assigned to it."""
    code = frame.f_code
    named = code.co_argcount + code.co_kwonlyargcount
    values: List[Any] = [frame.f_locals.get(name, _DELETED) for name in code.co_varnames[:named]]
    if code.co_flags & inspect.CO_VARARGS:
        rest = frame.f_locals.get(code.co_varnames[named], _DELETED)
        values += rest if isinstance(rest, tuple) else [rest]
    return values


def _code_of(handler: Any) -> Optional[CodeType]:
    """The code of a signal's handler; None for one that is not written in Python."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    function = inspect.unwrap(handler) if callable(handler) else None
    if function is not None and not hasattr(function, "__code__") and not inspect.ismethod(function):
        function = getattr(type(function), "__call__", None)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, CodeType) else None


def _kind(value: Any) -> str:
    return type(value).__qualname__
