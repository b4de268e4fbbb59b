# SPDX-License-Identifier: Apache-2.0
"""An app with threads: one that listens to the supervisor, and one that calls the delegate."""

from __future__ import annotations

import logging
import os
import queue
import select
import socket
import sys
import threading
import time
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Type, Union

from ._delegate import Delegate, checked, last_answer, method_of, result_of
from ._errors import (
    AlreadyAnswered,
    AlreadyAttached,
    InvalidParameter,
    NotPermitted,
    SupervisorGone,
    TorporError,
    UnknownTask,
    failure,
)
from ._messages import Message, Situation, heartbeat
from ._session import (
    ALONE,
    CALL_TIMEOUT,
    EXPIRY_INTERVAL,
    LAST_ANSWER_TIMEOUT,
    LONGEST_REPLY,
    SAVE_TIMEOUT,
    Session,
    call_bytes,
    heartbeat_interval,
    new_socket,
    new_token,
    pauses,
    post_parameters,
    read_reply,
    state_parameters,
    subscribe_parameters,
    take_parameters,
    time_to_expiry,
)

_log = logging.getLogger("torpor")


class _Connection:
    """One connection to the supervisor, for one thread at a time."""

    def __init__(self, path: str, until: Optional[float] = None) -> None:
        self.socket = new_socket()
        self._buffer = bytearray()
        #: Replies to calls that were given up.
        self.owed = 0
        try:
            self._bound(until)
            self.socket.connect(path)
        except BaseException:
            self.socket.close()
            raise

    def _bound(self, until: Optional[float]) -> None:
        self.socket.settimeout(None if until is None else max(0.001, until - time.monotonic()))

    def send(self, data: bytes, until: Optional[float] = None) -> None:
        self._bound(until)
        self.socket.sendall(data)

    def receive(self, until: Optional[float] = None) -> bytes:
        """One reply; ConnectionError at the end."""
        searched = 0
        while True:
            end = self._buffer.find(b"\0", searched)
            if end >= 0:
                reply = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                return reply
            searched = len(self._buffer)
            if searched > LONGEST_REPLY:
                raise ConnectionError("the supervisor's reply has no end")
            self._bound(until)
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionError("the supervisor has closed the connection")
            self._buffer += data

    @property
    def is_broken(self) -> bool:
        try:
            self.socket.settimeout(0)
            return not self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self, *, of_parent: bool = False) -> None:
        try:
            # Also for a child that was forked and has a copy; that itself leaves its parent's as it is.
            if not of_parent:
                self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()


class BackgroundTask:
    """A background task that was begun: a context manager which ends it."""

    def __init__(self, app: App, name: str, token: int, on_expiry: Optional[Callable[[], Any]]) -> None:
        self.name = name
        self.token = token
        self._app = app
        self._on_expiry = on_expiry
        self._expired = threading.Event()

    @property
    def expired(self) -> bool:
        """Its time is almost up: what is not done by now is to be left for later."""
        return self._expired.is_set()

    def wait_for_expiry(self, timeout: Optional[float] = None) -> bool:
        """Waits until then, at most so many seconds; whether it is."""
        return self._expired.wait(timeout)

    def end(self) -> None:
        """Ends it; a second time is nothing."""
        self._app._end_task(self)

    def _expire(self) -> None:
        with self._app._lock:
            is_first = not self._expired.is_set()
            self._expired.set()
        if is_first and self._on_expiry is not None:
            self._on_expiry()

    def __enter__(self) -> BackgroundTask:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        # A child that was forked inside leaves it to its parent.
        if self._app._session.is_of_this_process:
            self.end()


class App:
    """The program as an app: its delegate, tasks and state. All methods may be called from any thread.

    Without a delegate, in a worker process of an app, it gets no messages. A process that is forked from one with an
    App makes an App of its own.

    A method of the delegate that raises SystemExit, as sys.exit() does, or KeyboardInterrupt ends the program with that
    status, once the message is answered (two seconds later if no supervisor takes the answer). In the thread that start begins it does so at once, by os._exit after what was printed and logged is written:
    no thread but the main one could end it otherwise, and that is elsewhere. A program that has more to do at its end
    calls close, or sets an event that the main thread waits for. In the main thread, with run, it is raised out of run.

    If the app has a ``watchdog``, an App with a delegate sends the heartbeats, at half the interval, from the thread that
    calls the delegate: they stop while a method runs. They say that no method hangs, and with run, that the main thread
    does not. Of a main thread that does something else they say nothing: a program whose main thread does the work passes
    heartbeats=False, and calls ``torpor.notify("WATCHDOG=1")`` there whenever it has come on.
    """

    def __init__(self, delegate: Optional[Delegate] = None, *, heartbeats: bool = True) -> None:
        self._receives = delegate is not None
        self._heartbeat_interval = heartbeat_interval() if heartbeats and self._receives else None
        self._delegate = checked(delegate, "torpor.App", coroutines=False)
        self._session = Session()
        self._closed = threading.Event()
        # Guards what follows; never held while something waits.
        self._lock = threading.Condition()
        self._attached = False
        self._threads: List[threading.Thread] = []
        self._running: Dict[int, BackgroundTask] = {}
        self._messages: queue.SimpleQueue[Optional[Callable[[], Any]]] = queue.SimpleQueue()
        self._stream: Optional[_Connection] = None
        # Each held by the one who waits for a reply over the connection.
        self._answers_lock = threading.Lock()
        self._answers: Optional[_Connection] = None
        self._calls_lock = threading.Lock()
        self._calls: Optional[_Connection] = None
        self._keeps_tasks = False
        self._keeps_time = False
        # The message that is not answered yet.
        self._unanswered: Optional[int] = None
        self._has_started = False

    # The app's life.

    @property
    def supervised(self) -> bool:
        """Whether there is a supervisor."""
        return self._session.supervised

    def start(self) -> None:
        """Starts listening, and a thread that calls the delegate. Raises RuntimeError if the app was started already."""
        self._begin()
        self._start(self._work, "torpor-delegate")

    def run(self) -> None:
        """Listens, and calls the delegate in this thread until close is called. Raises RuntimeError as start does."""
        self._begin()
        self._work()

    def _begin(self) -> None:
        self._session.need_this_process()
        with self._lock:
            if self._has_started:
                raise RuntimeError(
                    "The app was started already, by start or by `with app:`, and its delegate is called in a thread: "
                    "wait for what ends the program instead of calling run or start again."
                )
            self._has_started = True
        self._listen()

    def close(self) -> None:
        """Ends connections, tasks and threads. From a method of the delegate too; in a forked child it lets go of copies."""
        if not self._session.is_of_this_process:
            for connection in (self._stream, self._answers, self._calls):
                if connection is not None:
                    connection.close(of_parent=True)
            return
        self._closed.set()
        with self._lock:
            self._lock.notify_all()
            connections = [self._stream, self._answers, self._calls]
        self._messages.put(None)
        for connection in connections:
            if connection is not None:
                connection.close()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def __enter__(self) -> App:
        self.start()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    # Answers.

    def answer(self, message: Message, failed: Optional[str] = None, *, unhandled: bool = False) -> None:
        """Answers a message whose method returned LATER: done, failed with a sentence, or unhandled."""
        self._session.need_this_process()
        try:
            if self.supervised:
                self._answer(Session.final_answer(message, failed, unhandled))
        finally:
            with self._lock:
                if self._unanswered == message.id:
                    self._unanswered = None

    def pending(self, message: Message, expected: float, text: Optional[str] = None) -> None:
        """Says that the answer takes so many seconds from now, for a longer deadline where the app may have one."""
        self._session.need_this_process()
        if self.supervised:
            self._answer(Session.answer(message, "pending", text, expected))

    # Tasks.

    def background_task(self, name: str, on_expiry: Optional[Callable[[], Any]] = None) -> BackgroundTask:
        """Begins a background task: the app is not suspended before it is ended or its time is up.

        Shortly before, on_expiry is called and task.expired becomes true; the work has to come to an end then, and the
        task with it. on_expiry is called in the delegate's thread, or, in a worker and while a message is not answered,
        in another thread of the library.
        """
        self._session.need_this_process()
        with self._calls_lock:
            if not self.supervised:
                return self._note(name, self._session.own_token(), on_expiry)
            reply = self._call_held("BeginTask", {"name": name}, CALL_TIMEOUT)
            task = self._note(name, int(reply["token"]), on_expiry)
            if not self._receives and not self._keeps_tasks:
                self._keeps_tasks = True
                self._start(self._keep_tasks, "torpor-tasks")
            if not self._keeps_time:
                self._keeps_time = True
                self._start(self._keep_time, "torpor-time")
        return task

    def background_time(self) -> Optional[float]:
        """How many seconds the app may still run for its tasks; None while that is not limited."""
        if not self.supervised:
            return None
        remaining = self._call("BackgroundTime", {})["remaining_ms"]
        return None if remaining is None else float(remaining) / 1000

    # State.

    def save_state(self, data: bytes, *, scene: Optional[str] = None) -> None:
        """Keeps bytes for restore_state after an eviction, a crash or a boot; returns when they are durable.

        With scene, keeps them as the state of this scene inside the app, for scene_will_connect."""
        self._session.need_supervisor()
        with state_parameters(data) as parameters:
            self._call("SaveState", {**parameters, "scene": scene}, SAVE_TIMEOUT)

    def save_state_file(self, name: str, *, scene: Optional[str] = None) -> None:
        """The same with a file in TORPOR_STATE_DIRECTORY, by its name there, which is copied."""
        self._session.need_supervisor()
        self._call("SaveState", {"file": name, "scene": scene}, SAVE_TIMEOUT)

    def discard_state(self, *, scene: Optional[str] = None) -> None:
        """Forgets what was kept, of the app or of a scene inside it."""
        self._session.need_supervisor()
        self._call("DiscardState", {"scene": scene}, SAVE_TIMEOUT)

    # Other apps.

    def open_url(self, url: str) -> str:
        """Has another app open a URL, whose scheme may_open of this app names. Returns that app's name when the URL is
        durable, not when it is opened; the app is brought to the foreground for it."""
        self._session.need_supervisor("open the URL")
        return str((self._call("OpenURL", {"url": url, "token": new_token()}))["app"])

    def can_open(self, scheme: str) -> bool:
        """Whether another app opens URLs of the scheme, which may_open of this app names."""
        self._session.need_supervisor("know other apps")
        return bool((self._call("CanOpen", {"scheme": scheme}))["can"])

    def post(
        self,
        app: str,
        topic: str,
        payload: Any = None,
        *,
        coalesce: Optional[str] = None,
        key: Optional[str] = None,
        urgent: Optional[bool] = None,
    ) -> Optional[int]:
        """Posts a message to another app, which must accept the topic, and accept it from this app (accepts_from). Returns
        when the message is on disk, with its number in the other app's mailbox; None if it cancelled out another one there."""
        self._session.need_supervisor("post the message")
        number = (self._call("Post", post_parameters(app, topic, payload, coalesce, key, urgent)))["id"]
        return None if number is None else int(number)

    def subscribe(
        self,
        topic: str,
        *,
        coalesce: Optional[str] = None,
        urgent: Optional[bool] = None,
        wake: Optional[str] = None,
        keep: Optional[bool] = None,
    ) -> None:
        """Subscribes the app to messages of a topic, which may be a pattern of * and ?, as an entry of topics in its
        configuration does. The subscription survives restarts of the app, the supervisor and the machine."""
        if self.supervised:
            self._call("Subscribe", subscribe_parameters(topic, coalesce, urgent, wake, keep))

    def unsubscribe(self, topic: str) -> None:
        """Ends a subscription."""
        if self.supervised:
            self._call("Subscribe", {"topic": topic, "end": True})

    def take(
        self,
        max: Optional[int] = None,
        *,
        keep: bool = False,
        done: Sequence[int] = (),
        only: Sequence[int] = (),
    ) -> Sequence[Mapping[str, Any]]:
        """Takes messages from the app's mailbox, the first ones first, at most max: for programs that handle them in their
        own order instead of having the delegate get them. Empty if none waits, and without a supervisor.

        Without keep they are removed at once, and lost if the program ends before it has handled them. With keep a message
        stays until a later call has its id in done. With only, just the messages with these ids count."""
        if not self.supervised:
            return []
        mail: Sequence[Mapping[str, Any]] = self._call("Take", take_parameters(max, keep, done, only))["mail"]
        return mail

    # Transfers.

    def download(
        self,
        url: str,
        file: str,
        session: str = "default",
        *,
        sha256: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
        discretionary: bool = False,
        events: bool = True,
        priority: int = 0,
    ) -> int:
        """Has a file downloaded, also while the app sleeps; transfer_did_finish tells the end. Returns its number, 1 or
        more, once the supervisor has written it down.

        file is a name below the app's state directory, or a path there or in one of its data folders. A download that is
        discretionary waits for a good moment; without events, its end does not wake the app."""
        request: Dict[str, Any] = {"direction": "download", "url": url, "file": file, "sha256": sha256}
        request.update(session=session, discretionary=discretionary, events=events, priority=priority)
        return self._start_transfer(request, headers)

    def upload(
        self,
        file: str,
        url: str,
        session: str = "default",
        *,
        method: str = "PUT",
        headers: Optional[Mapping[str, str]] = None,
        discretionary: bool = False,
        events: bool = True,
        retry: bool = False,
        priority: int = 0,
    ) -> int:
        """Has a file uploaded by PUT or POST, otherwise as download. A POST is tried again only with retry."""
        request: Dict[str, Any] = {"direction": "upload", "url": url, "file": file, "method": method, "retry": retry}
        request.update(session=session, discretionary=discretionary, events=events, priority=priority)
        return self._start_transfer(request, headers)

    def _start_transfer(self, request: Dict[str, Any], headers: Optional[Mapping[str, str]]) -> int:
        self._session.need_supervisor("transfer files")
        request["headers"] = [{"name": name, "value": value} for name, value in (headers or {}).items()]
        request["token"] = new_token()
        return int(self._call("StartTransfer", request)["id"])

    def transfers(self, session: Optional[str] = None) -> Sequence[Mapping[str, Any]]:
        """The app's transfers, those included that are over and that it has not answered for."""
        self._session.need_supervisor("transfer files")
        transfers: List[Mapping[str, Any]] = []
        while True:
            after = {"after": transfers[-1]["id"]} if transfers else {}
            part = self._call("Transfers", {"session": session, **after})
            transfers += part["transfers"]
            if not part["transfers"] or not part.get("more"):
                return transfers

    def cancel_transfer(self, id: int) -> None:
        """Ends a transfer; the app is not told of its end."""
        self._session.need_supervisor("transfer files")
        self._call("CancelTransfer", {"id": id})

    def answer_login(
        self, id: int, user: Optional[str] = None, password: str = "", *, header: Optional[str] = None
    ) -> None:
        """Answers transfer_needs_login: by user and password, or by the value of an Authorization field. Without either
        the transfer fails."""
        self._session.need_supervisor("transfer files")
        login: Dict[str, Any] = {"cancel": True}
        if header is not None:
            login = {"header": header}
        elif user is not None:
            login = {"user": user, "password": password}
        self._call("AnswerLogin", {"id": id, **login})

    # Alerts.

    def schedule_alert(
        self,
        title: str,
        *,
        id: Optional[str] = None,
        body: str = "",
        at: Union[str, datetime, None] = None,
        time_zone: Optional[str] = None,
        after: Union[float, timedelta, None] = None,
        calendar: Optional[str] = None,
        urgency: str = "normal",
        sound: Optional[str] = None,
        badge: Optional[int] = None,
        actions: Optional[Mapping[str, str]] = None,
        url: Optional[str] = None,
        payload: Any = None,
        wake: bool = False,
    ) -> str:
        """Shows people an alert, now, at a time, after seconds, or again and again by a calendar expression; one of the
        same id is replaced. While the app is in the foreground, did_receive_local_notification is told instead. Returns
        its id once the supervisor has written it down.

        A time without a zone is a time of day in time_zone, or where the machine is. actions has labels by id."""
        self._session.need_supervisor("show alerts")
        request: Dict[str, Any] = {"title": title, "body": body, "urgency": urgency, "wake": wake}
        more = {"id": id, "time_zone": time_zone, "calendar": calendar, "sound": sound, "badge": badge, "url": url}
        more.update(payload=payload, at=at.isoformat() if isinstance(at, datetime) else at)
        request.update({name: value for name, value in more.items() if value is not None})
        if after is not None:
            seconds = after.total_seconds() if isinstance(after, timedelta) else after
            request["after_ms"] = round(seconds * 1000)
        request["actions"] = [{"id": id, "label": label} for id, label in (actions or {}).items()]
        request["token"] = new_token()
        return str((self._call("ScheduleAlert", request))["alert"]["id"])

    def alerts(self) -> Sequence[Mapping[str, Any]]:
        """The app's alerts: the open ones, then those to come."""
        self._session.need_supervisor("show alerts")
        alerts: Sequence[Mapping[str, Any]] = (self._call("Alerts", {}))["alerts"]
        return alerts

    def cancel_alerts(self, *ids: str) -> None:
        """Cancels the alerts of these ids, scheduled and open ones; without ids, none."""
        self._session.need_supervisor("show alerts")
        # An earlier supervisor would cancel all.
        if ids:
            self._call("CancelAlert", {"ids": list(ids)})

    def cancel_all_alerts(self) -> None:
        """Cancels all alerts of the app."""
        self._session.need_supervisor("show alerts")
        self._call("CancelAlert", {})

    def set_badge(self, count: int) -> None:
        """Shows a number, 1 to 9999, at the app's entry, or with 0 none."""
        self._session.need_supervisor("show alerts")
        self._call("SetBadge", {"count": count})

    # Permissions.

    def permissions(self) -> Mapping[str, str]:
        """What applies to each permission that is declared for the app: "allow", "deny" or "ask", which means withheld,
        since nobody has answered. Empty without a supervisor."""
        if not self.supervised:
            return {}
        return {one["name"]: one["state"] for one in (self._call("Permissions", {}))["permissions"]}

    def request_permission(self, name: str) -> Mapping[str, Any]:
        """Has people asked for a permission, once, and at most once an hour for each app. Returns at once; state is as
        for permissions, asked says whether people are asked now, next_at (microseconds since 1970) when they can be, and
        message why they are not. Without a supervisor nothing is withheld."""
        if not self.supervised:
            return {"state": "allow", "asked": False, "next_at": None, "message": None}
        reply: Mapping[str, Any] = self._call("RequestPermission", {"name": name})
        return reply

    # Refreshing.

    def set_needs_refresh(self, names: Sequence[str]) -> None:
        """Names what must be refreshed before people see the app again. The names gather while it is not in the foreground;
        refresh gets them when it comes there, or at once."""
        if self.supervised:
            self._call("SetNeedsRefresh", {"names": list(names)}, SAVE_TIMEOUT)

    # Activities.

    def set_activity(
        self,
        type: str,
        *,
        title: Optional[str] = None,
        payload: Optional[Mapping[str, Any]] = None,
        url: Optional[str] = None,
        needs_state: bool = False,
    ) -> None:
        """Says what a person is doing in the app, which must be in the foreground: another app, or the app on another
        machine, can go on with it. It ends with the next one, with end_activity, with the app, and five minutes after the
        app has left the foreground. With needs_state it can only go on with the state that the app has saved."""
        if self.supervised:
            given: Dict[str, Any] = {"type": type, "title": title, "payload": payload, "url": url}
            given["state"] = needs_state or None
            call = {name: value for name, value in given.items() if value is not None}
            self._call("SetActivity", call)

    def end_activity(self) -> None:
        """Ends what a person was doing in the app."""
        if self.supervised:
            self._call("EndActivity", {})

    # Settings.

    def settings(self) -> Mapping[str, Any]:
        """What the app is set to: a value for each setting, None where it has none."""
        self._session.need_supervisor("know its settings")
        settings: Mapping[str, Any] = (self._call("Settings", {})).get("settings") or {}
        return settings

    def set_settings(self, values: Mapping[str, Any], unset: Sequence[str] = ()) -> Sequence[str]:
        """Sets and unsets settings that are the app's own to set, all or none; returns those that changed.

        A value is a str as a user would write it, a number or a bool. For a setting that is a string, 5 becomes "5"."""
        self._session.need_supervisor("know its settings")
        parameters = {"values": dict(values), "unset": list(unset)}
        changed: Sequence[str] = (self._call("SetSettings", parameters, SAVE_TIMEOUT)).get("changed") or []
        return changed

    # Snapshots.

    def save_snapshot(self, data: bytes, *, scene: Optional[str] = None) -> None:
        """Keeps what the app shows, a picture (PNG, JPEG, GIF, WebP) or a text, while it is in the background.

        With scene, keeps what this scene inside the app shows."""
        self._session.need_supervisor("keep its snapshot")
        with state_parameters(data) as parameters:
            self._call("SaveSnapshot", {**parameters, "scene": scene}, SAVE_TIMEOUT)

    def save_snapshot_file(self, name: str, *, scene: Optional[str] = None) -> None:
        """The same with a file in TORPOR_STATE_DIRECTORY, by its name there, which is copied."""
        self._session.need_supervisor("keep its snapshot")
        self._call("SaveSnapshot", {"file": name, "scene": scene}, SAVE_TIMEOUT)

    def discard_snapshot(self, *, scene: Optional[str] = None) -> None:
        """Forgets the snapshot of the app or of a scene inside it, and has none taken before it enters the background
        again."""
        self._session.need_supervisor("keep its snapshot")
        self._call("DiscardSnapshot", {"scene": scene}, SAVE_TIMEOUT)

    def situation(self) -> Situation:
        """The state that the app is in, and its tasks."""
        self._session.need_supervisor("know its state")
        return Situation.read(self._call("State", {}))

    # Messages.

    def _start(self, work: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _listen(self) -> None:
        if not self._receives:
            return
        if self.supervised:
            self._start(self._read_messages, "torpor-messages")
            return
        for message in ALONE:
            self._queue(Message(message.id, message.name, None, message.parameters, self))

    def _queue(self, message: Message) -> None:
        self._messages.put(lambda: self._handle(message))

    def _problem(self, sentence: str) -> None:
        _log.warning("%s", sentence)
        self._messages.put(lambda: self._delegate.problem(sentence))

    def _read_messages(self) -> None:
        waits, complained = pauses(), False
        while not self._closed.is_set():
            try:
                self._read_connection()
            except NotPermitted as error:
                return self._problem(f"The supervisor does not take this process as the app's delegate: {error}")
            except AlreadyAttached as error:
                if not complained:
                    complained = True
                    self._problem(f"This App gets no messages while the app has another delegate: {error}")
            except (OSError, ValueError, TorporError) as error:
                with self._lock:
                    was_attached, self._attached = self._attached, False
                if was_attached:
                    waits, complained = pauses(), False
                if not complained and isinstance(error, PermissionError):
                    complained = True
                    _log.error("%s", self._session.forbidden(error))
                    self._problem(self._session.forbidden(error))
                if not complained and not isinstance(error, OSError) and not self._closed.is_set():
                    complained = True
                    self._problem(f"Reconnecting to the supervisor: {error}")
            self._closed.wait(next(waits))

    def _read_connection(self) -> None:
        """Attaches, and reads until the connection ends: always by an exception."""
        connection = _Connection(self._session.need_supervisor())
        try:
            with self._lock:
                self._stream = connection
                call = self._session.attach_call()
            if self._closed.is_set():
                raise ConnectionError("closed")
            connection.send(call)
            self._did_attach(Situation.read(read_reply(connection.receive())[0]))
            while True:
                parameters, more = read_reply(connection.receive())
                if parameters.get("message") is not None:
                    message = Message.read(parameters["message"])
                    message.app = self
                    if self._session.is_new(message):
                        self._queue(message)
                if not more:
                    raise ConnectionError("the supervisor has ended the stream")
        finally:
            connection.close()

    def _did_attach(self, situation: Situation) -> None:
        with self._lock:
            self._session.took(situation)
            self._attached = True
            self._lock.notify_all()
        self._messages.put(lambda: self._delegate.attached(situation))
        if self._session.tasks:
            with self._calls_lock:
                self._prepare(time.monotonic() + CALL_TIMEOUT)

    def _work(self) -> None:
        while True:
            work = self._next_work()
            if work is None:
                return
            try:
                work()
            except (KeyboardInterrupt, SystemExit) as error:
                if threading.current_thread() is threading.main_thread():
                    raise
                _end_program(error)
            except BaseException:
                _log.exception("A method of the delegate failed.")

    def _next_work(self) -> Optional[Callable[[], Any]]:
        if self._heartbeat_interval is None:
            return self._messages.get()
        while True:
            # Also before each message: its method has the whole interval.
            heartbeat()
            try:
                work = self._messages.get(timeout=self._heartbeat_interval)
            except queue.Empty:
                continue
            heartbeat()
            return work

    def _handle(self, message: Message) -> None:
        with self._lock:
            self._unanswered = message.id
            self._lock.notify_all()
        failed: Optional[str] = None
        result: Optional[str] = None
        ends: Optional[BaseException] = None
        try:
            if message.name == "taskExpiring":
                task = self._running.get(message.parameters.get("token", 0))
                if task is not None:
                    task._expire()
            result = result_of(method_of(self._delegate, message)(message), message)
            if result is None:
                return
        except (KeyboardInterrupt, SystemExit) as error:
            ends = error
        except BaseException as error:
            # CancelledError too, which is no Exception.
            _log.exception("The delegate failed at %s.", message.name)
            failed = failure(error)
        try:
            if ends is None:
                self.answer(message, failed, unhandled=result == "unhandled")
            else:
                self._answer_last(message, ends)
        except TorporError as error:
            if not self._closed.is_set():
                self._problem(f"The answer to {message.name} was not taken: {error}")
        if ends is not None:
            raise ends

    def _answer_last(self, message: Message, error: BaseException) -> None:
        answer = last_answer(error, message)
        if answer is not None and self.supervised:
            self._answer(Session.answer(message, *answer), time.monotonic() + LAST_ANSWER_TIMEOUT)

    def _answer(self, parameters: Mapping[str, Any], until: Optional[float] = None) -> None:
        """Says it until the supervisor has heard it, or a moment is over; whoever replaces it meanwhile counts it once."""
        if not self._answers_lock.acquire(timeout=-1 if until is None else max(0.0, until - time.monotonic())):
            raise SupervisorGone("The supervisor has not taken the answer before this one.")
        try:
            self._answer_held(parameters, until)
        finally:
            self._answers_lock.release()

    def _answer_held(self, parameters: Mapping[str, Any], until: Optional[float]) -> None:
        call = call_bytes("Answer", parameters)
        for pause in pauses():
            left = None if until is None else max(0.0, until - time.monotonic())
            with self._lock:
                self._lock.wait_for(lambda: self._attached or self._closed.is_set(), left)
            if self._closed.is_set():
                raise SupervisorGone("The app was closed before the supervisor had the answer.")
            if until is not None and time.monotonic() >= until:
                raise SupervisorGone("The program ended before the supervisor had the answer.")
            try:
                if self._answers is not None and self._answers.is_broken:
                    self._answers.close()
                    self._answers = None
                if self._answers is None:
                    self._answers = _Connection(self._session.need_supervisor(), until)
                self._answers.send(call, until)
                read_reply(self._answers.receive(until))
                return
            except AlreadyAnswered:
                return
            except InvalidParameter:
                if parameters["result"] != "unhandled":
                    raise
                # A supervisor that is older than the word: to that one the message is done.
                call = call_bytes("Answer", {**parameters, "result": "done"})
                continue
            except (OSError, ValueError):
                if self._answers is not None:
                    self._answers.close()
                self._answers = None
            self._closed.wait(pause)

    # Calls that are waited for.

    def _note(self, name: str, token: int, on_expiry: Optional[Callable[[], Any]]) -> BackgroundTask:
        task = BackgroundTask(self, name, token, on_expiry)
        self._session.tasks = {**self._session.tasks, token: name}
        with self._lock:
            self._running[token] = task
            self._lock.notify_all()
        return task

    def _end_task(self, task: BackgroundTask) -> None:
        self._session.need_this_process()
        with self._calls_lock:
            if self._running.pop(task.token, None) is None:
                return
            self._session.tasks = {
                token: name for token, name in self._session.tasks.items() if token != task.token
            }
            if self.supervised and not self._closed.is_set():
                try:
                    self._call_held("EndTask", {"token": task.token}, CALL_TIMEOUT)
                except UnknownTask:
                    pass

    def _call(self, member: str, parameters: Mapping[str, Any], timeout: float = CALL_TIMEOUT) -> Mapping[str, Any]:
        self._session.need_this_process()
        with self._calls_lock:
            return self._call_held(member, parameters, timeout)

    def _call_held(self, member: str, parameters: Mapping[str, Any], timeout: float) -> Mapping[str, Any]:
        """Calls, again over a new connection where one breaks: every call here may be repeated."""
        call, until = call_bytes(member, parameters), time.monotonic() + timeout
        waits = pauses()
        while True:
            try:
                return self._transact(self._prepare(until), call, until)
            except (OSError, ValueError) as error:
                if self._closed.is_set() or time.monotonic() >= until:
                    raise SupervisorGone(f"The supervisor at {self._session.path} does not answer: {error}") from error
            self._closed.wait(min(next(waits), max(0.0, until - time.monotonic())))

    def _transact(self, connection: _Connection, call: bytes, until: float) -> Mapping[str, Any]:
        try:
            connection.send(call, until)
        except OSError:
            # Half a call cannot be taken back.
            self._drop_calls()
            raise
        connection.owed += 1
        try:
            while True:
                reply = connection.receive(until)
                connection.owed -= 1
                if connection.owed == 0:
                    return read_reply(reply)[0]
        except socket.timeout:
            # Its reply is left to whoever calls next: the tasks need the connection.
            raise
        except (OSError, ValueError):
            self._drop_calls()
            raise

    def _drop_calls(self) -> None:
        if self._calls is not None:
            self._calls.close()
        self._calls = None

    def _prepare(self, until: float) -> _Connection:
        """The connection for calls, which the tasks belong to: a new one takes them over."""
        if self._calls is not None and self._calls.is_broken:
            self._drop_calls()
        if self._calls is None:
            self._calls = _Connection(self._session.need_supervisor(), until)
            if self._session.tasks:
                self._transact(self._calls, call_bytes("ClaimTasks", {"tokens": sorted(self._session.tasks)}), until)
        if self._calls is None:
            raise ConnectionError("the connection broke")
        return self._calls

    def _keep_time(self) -> None:
        """Has tasks expire where taskExpiring does not: a worker is not sent it, and it waits behind a message that is
        not answered, whose method may be what works for the task."""
        while not self._closed.is_set():
            with self._lock:
                self._lock.wait_for(lambda: self._closed.is_set() or self._has_to_keep_time)
            if self._closed.is_set():
                return
            try:
                left = time_to_expiry(self._call("BackgroundTime", {}))
            except TorporError:
                left = None
            if left is not None and left <= 0:
                self._expire_all()
            else:
                self._closed.wait(EXPIRY_INTERVAL if left is None else min(left, EXPIRY_INTERVAL))

    @property
    def _has_to_keep_time(self) -> bool:
        if self._receives and self._unanswered is None:
            return False
        return any(not task.expired for task in list(self._running.values()))

    def _expire_all(self) -> None:
        for task in list(self._running.values()):
            try:
                task._expire()
            except (KeyboardInterrupt, SystemExit) as error:
                _end_program(error)
            except BaseException:
                _log.exception("The expiry handler of the task %s failed.", task.name)

    def _keep_tasks(self) -> None:
        """Without messages: notices that the supervisor was replaced."""
        while not self._closed.is_set():
            try:
                with self._calls_lock:
                    connection = self._prepare(time.monotonic() + 1.0)
                    watched = select.poll()
                    watched.register(connection.socket, select.POLLRDHUP)
                while not watched.poll(1000) and not self._closed.is_set():
                    pass
            except (OSError, ValueError, TorporError):
                self._closed.wait(0.05)


def _end_program(error: BaseException) -> None:
    """Ends the program from a thread as the interpreter would from its main one, as far as that can be done."""
    status = 1
    if isinstance(error, KeyboardInterrupt):
        status = 130
    elif isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    _log.log(
        logging.ERROR if status else logging.INFO,
        "A method of the delegate ended the program with status %d.",
        status,
        exc_info=error if status else None,
    )
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            # It is closed, or there is none.
            pass
    os._exit(status & 0xFF)
