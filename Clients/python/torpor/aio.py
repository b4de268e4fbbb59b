# SPDX-License-Identifier: Apache-2.0
"""An app on asyncio: the delegate's methods may be coroutines, and a background task is an asynchronous context.

::

    class Uploader(torpor.Delegate):
        async def did_enter_background(self, message):
            await message.app.save_state(b"...")

    async def main():
        async with torpor.aio.App(Uploader()) as app:
            async with app.background_task("upload"):
                await upload()      # is cancelled shortly before the time is up
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Type, TypeVar, Union

from ._delegate import Delegate, checked, last_answer, method_of, result_of
from ._errors import (
    AlreadyAnswered,
    AlreadyAttached,
    InvalidParameter,
    NotPermitted,
    SupervisorGone,
    TaskExpired,
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

_Result = TypeVar("_Result")
_log = logging.getLogger("torpor")

#: What a connection or what comes over it can be wrong with.
_BROKEN = (OSError, EOFError, ValueError, asyncio.LimitOverrunError)


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, path: str) -> _Connection:
        connection = new_socket()
        try:
            connection.setblocking(False)
            await asyncio.get_running_loop().sock_connect(connection, path)
            return cls(*await asyncio.open_unix_connection(sock=connection, limit=LONGEST_REPLY))
        except BaseException:
            connection.close()
            raise

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self) -> bytes:
        return (await self._reader.readuntil(b"\0"))[:-1]

    @property
    def is_broken(self) -> bool:
        return self._reader.at_eof() or self._reader.exception() is not None or self._writer.is_closing()

    def close(self) -> None:
        self._writer.close()


class _Caller:
    """A connection over which calls go one after the other, made anew where it breaks."""

    def __init__(self, session: Session, claims: bool) -> None:
        self._session = session
        self._claims = claims
        self._connection: Optional[_Connection] = None
        self.lock = asyncio.Lock()

    async def prepare(self) -> _Connection:
        if self._connection is not None and self._connection.is_broken:
            self.close()
        if self._connection is None:
            self._connection = await _Connection.open(self._session.need_supervisor())
            if self._claims and self._session.tasks:
                await self._say(self._connection, call_bytes("ClaimTasks", {"tokens": sorted(self._session.tasks)}))
        return self._connection

    async def _say(self, connection: _Connection, call: bytes) -> Mapping[str, Any]:
        whole = False
        try:
            await connection.send(call)
            reply = await connection.receive()
            whole = True
        finally:
            # Also where it is cancelled: a reply that nobody waits for would be taken for another one's.
            if not whole:
                self.close()
        return read_reply(reply)[0]

    async def call(self, call: bytes) -> Mapping[str, Any]:
        return await self._say(await self.prepare(), call)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class BackgroundTask:
    """A background task: an asynchronous context. What is in it is cancelled when the time is almost up."""

    def __init__(self, app: App, name: str, on_expiry: Optional[Callable[[], Any]], cancels: bool) -> None:
        self.name = name
        self.token = 0
        #: Its time is almost up.
        self.expired = False
        self._app = app
        self._on_expiry = on_expiry
        self._cancels = cancels
        self._inside: Optional[asyncio.Task[Any]] = None
        self._cancelled = False
        #: Cancelled before it had begun.
        self._unwanted = False

    async def __aenter__(self) -> BackgroundTask:
        await self._app._begin(self)
        self._inside = asyncio.current_task()
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        inside, self._inside = self._inside, None
        late: Optional[BaseException] = None
        try:
            await self._app._end(self)
        except asyncio.CancelledError as cancelled:
            late = cancelled
        if self._cancelled:
            uncancel = getattr(inside, "uncancel", None)
            # Cancelled by somebody else as well (3.11 and later can tell): that goes on.
            if uncancel is None or uncancel() == 0:
                late = None
                if isinstance(error, asyncio.CancelledError):
                    raise TaskExpired(f"The time of the background task {self.name} was up.") from error
        if late is not None:
            raise late

    async def _expire(self) -> None:
        if self.expired:
            return
        self.expired = True
        if self._on_expiry is not None:
            result = self._on_expiry()
            if inspect.isawaitable(result):
                await result
        if self._cancels and self._inside is not None:
            self._cancelled = True
            self._inside.cancel()


class App:
    """The program as an app: its delegate, tasks and state. All belongs to one event loop.

    If the app has a ``watchdog``, an App with a delegate sends the heartbeats, at half the interval, as a task of the event
    loop: they stop while something blocks the loop. A program that proves its progress otherwise passes heartbeats=False,
    and calls ``torpor.notify("WATCHDOG=1")``.
    """

    def __init__(self, delegate: Optional[Delegate] = None, *, heartbeats: bool = True) -> None:
        self._receives = delegate is not None
        self._heartbeat_interval = heartbeat_interval() if heartbeats and self._receives else None
        self._delegate = checked(delegate, "torpor.aio.App", coroutines=True)
        self._session = Session()
        self._running: Dict[int, BackgroundTask] = {}
        self._workers: Set[asyncio.Future[Any]] = set()
        self._keeps_time = False
        # The message that is not answered yet.
        self._unanswered: Optional[int] = None

    # The app's life.

    @property
    def supervised(self) -> bool:
        """Whether there is a supervisor."""
        return self._session.supervised

    async def __aenter__(self) -> App:
        self._attached = asyncio.Event()
        self._began = asyncio.Event()
        self._time_matters = asyncio.Event()
        self._messages: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue()
        self._answers = _Caller(self._session, claims=False)
        self._calls = _Caller(self._session, claims=True)
        self._spawn(self._work())
        if self._heartbeat_interval is not None:
            self._spawn(self._send_heartbeats(self._heartbeat_interval))
        if self.supervised:
            self._spawn(self._read_messages() if self._receives else self._keep_tasks())
        elif self._receives:
            for message in ALONE:
                self._queue(Message(message.id, message.name, None, message.parameters, self))
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        self._answers.close()
        self._calls.close()

    # Answers.

    async def answer(self, message: Message, failed: Optional[str] = None, *, unhandled: bool = False) -> None:
        """Answers a message whose method returned LATER: done, failed with a sentence, or unhandled."""
        self._session.need_this_process()
        try:
            if self.supervised:
                await self._whole(self._answer(Session.final_answer(message, failed, unhandled)))
        finally:
            if self._unanswered == message.id:
                self._unanswered = None

    async def pending(self, message: Message, expected: float, text: Optional[str] = None) -> None:
        """Says that the answer takes so many seconds from now, for a longer deadline where the app may have one."""
        self._session.need_this_process()
        if self.supervised:
            await self._whole(self._answer(Session.answer(message, "pending", text, expected)))

    # Tasks.

    def background_task(
        self, name: str, on_expiry: Optional[Callable[[], Any]] = None, cancels: bool = True
    ) -> BackgroundTask:
        """A background task for ``async with``: the app is not suspended before it ends or its time is up.

        Shortly before, on_expiry is called (and awaited, if it is a coroutine), then what is inside is cancelled, which
        raises TaskExpired out of the context; with cancels=False, task.expired has to be looked at.
        """
        return BackgroundTask(self, name, on_expiry, cancels)

    async def background_time(self) -> Optional[float]:
        """How many seconds the app may still run for its tasks; None while that is not limited."""
        if not self.supervised:
            return None
        remaining = (await self._call("BackgroundTime", {}))["remaining_ms"]
        return None if remaining is None else float(remaining) / 1000

    # State.

    async def save_state(self, data: bytes, *, scene: Optional[str] = None) -> None:
        """Keeps bytes for restore_state after an eviction, a crash or a boot; returns when they are durable.

        With scene, keeps them as the state of this scene inside the app, for scene_will_connect."""
        self._session.need_supervisor()
        with state_parameters(data) as parameters:
            await self._call("SaveState", {**parameters, "scene": scene}, SAVE_TIMEOUT)

    async def save_state_file(self, name: str, *, scene: Optional[str] = None) -> None:
        """The same with a file in TORPOR_STATE_DIRECTORY, by its name there, which is copied."""
        self._session.need_supervisor()
        await self._call("SaveState", {"file": name, "scene": scene}, SAVE_TIMEOUT)

    async def discard_state(self, *, scene: Optional[str] = None) -> None:
        """Forgets what was kept, of the app or of a scene inside it."""
        self._session.need_supervisor()
        await self._call("DiscardState", {"scene": scene}, SAVE_TIMEOUT)

    # Other apps.

    async def open_url(self, url: str) -> str:
        """Has another app open a URL, whose scheme may_open of this app names. Returns that app's name when the URL is
        durable, not when it is opened; the app is brought to the foreground for it."""
        self._session.need_supervisor("open the URL")
        return str((await self._call("OpenURL", {"url": url, "token": new_token()}))["app"])

    async def can_open(self, scheme: str) -> bool:
        """Whether another app opens URLs of the scheme, which may_open of this app names."""
        self._session.need_supervisor("know other apps")
        return bool((await self._call("CanOpen", {"scheme": scheme}))["can"])

    async def post(
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
        number = (await self._call("Post", post_parameters(app, topic, payload, coalesce, key, urgent)))["id"]
        return None if number is None else int(number)

    async def subscribe(
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
            await self._call("Subscribe", subscribe_parameters(topic, coalesce, urgent, wake, keep))

    async def unsubscribe(self, topic: str) -> None:
        """Ends a subscription."""
        if self.supervised:
            await self._call("Subscribe", {"topic": topic, "end": True})

    async def take(
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
        mail: Sequence[Mapping[str, Any]] = (await self._call("Take", take_parameters(max, keep, done, only)))["mail"]
        return mail

    # Transfers.

    async def download(
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
        return await self._start_transfer(request, headers)

    async def upload(
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
        return await self._start_transfer(request, headers)

    async def _start_transfer(self, request: Dict[str, Any], headers: Optional[Mapping[str, str]]) -> int:
        self._session.need_supervisor("transfer files")
        request["headers"] = [{"name": name, "value": value} for name, value in (headers or {}).items()]
        request["token"] = new_token()
        return int((await self._call("StartTransfer", request))["id"])

    async def transfers(self, session: Optional[str] = None) -> Sequence[Mapping[str, Any]]:
        """The app's transfers, those included that are over and that it has not answered for."""
        self._session.need_supervisor("transfer files")
        transfers: List[Mapping[str, Any]] = []
        while True:
            after = {"after": transfers[-1]["id"]} if transfers else {}
            part = await self._call("Transfers", {"session": session, **after})
            transfers += part["transfers"]
            if not part["transfers"] or not part.get("more"):
                return transfers

    async def cancel_transfer(self, id: int) -> None:
        """Ends a transfer; the app is not told of its end."""
        self._session.need_supervisor("transfer files")
        await self._call("CancelTransfer", {"id": id})

    async def answer_login(
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
        await self._call("AnswerLogin", {"id": id, **login})

    # Alerts.

    async def schedule_alert(
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
        return str((await self._call("ScheduleAlert", request))["alert"]["id"])

    async def alerts(self) -> Sequence[Mapping[str, Any]]:
        """The app's alerts: the open ones, then those to come."""
        self._session.need_supervisor("show alerts")
        alerts: Sequence[Mapping[str, Any]] = (await self._call("Alerts", {}))["alerts"]
        return alerts

    async def cancel_alerts(self, *ids: str) -> None:
        """Cancels the alerts of these ids, scheduled and open ones; without ids, none."""
        self._session.need_supervisor("show alerts")
        # An earlier supervisor would cancel all.
        if ids:
            await self._call("CancelAlert", {"ids": list(ids)})

    async def cancel_all_alerts(self) -> None:
        """Cancels all alerts of the app."""
        self._session.need_supervisor("show alerts")
        await self._call("CancelAlert", {})

    async def set_badge(self, count: int) -> None:
        """Shows a number, 1 to 9999, at the app's entry, or with 0 none."""
        self._session.need_supervisor("show alerts")
        await self._call("SetBadge", {"count": count})

    # Permissions.

    async def permissions(self) -> Mapping[str, str]:
        """What applies to each permission that is declared for the app: "allow", "deny" or "ask", which means withheld,
        since nobody has answered. Empty without a supervisor."""
        if not self.supervised:
            return {}
        return {one["name"]: one["state"] for one in (await self._call("Permissions", {}))["permissions"]}

    async def request_permission(self, name: str) -> Mapping[str, Any]:
        """Has people asked for a permission, once, and at most once an hour for each app. Returns at once; state is as
        for permissions, asked says whether people are asked now, next_at (microseconds since 1970) when they can be, and
        message why they are not. Without a supervisor nothing is withheld."""
        if not self.supervised:
            return {"state": "allow", "asked": False, "next_at": None, "message": None}
        reply: Mapping[str, Any] = await self._call("RequestPermission", {"name": name})
        return reply

    # Refreshing.

    async def set_needs_refresh(self, names: Sequence[str]) -> None:
        """Names what must be refreshed before people see the app again. The names gather while it is not in the foreground;
        refresh gets them when it comes there, or at once."""
        if self.supervised:
            await self._call("SetNeedsRefresh", {"names": list(names)}, SAVE_TIMEOUT)

    # Activities.

    async def set_activity(
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
            await self._call("SetActivity", call)

    async def end_activity(self) -> None:
        """Ends what a person was doing in the app."""
        if self.supervised:
            await self._call("EndActivity", {})

    # Settings.

    async def settings(self) -> Mapping[str, Any]:
        """What the app is set to: a value for each setting, None where it has none."""
        self._session.need_supervisor("know its settings")
        settings: Mapping[str, Any] = (await self._call("Settings", {})).get("settings") or {}
        return settings

    async def set_settings(self, values: Mapping[str, Any], unset: Sequence[str] = ()) -> Sequence[str]:
        """Sets and unsets settings that are the app's own to set, all or none; returns those that changed.

        A value is a str as a user would write it, a number or a bool. For a setting that is a string, 5 becomes "5"."""
        self._session.need_supervisor("know its settings")
        parameters = {"values": dict(values), "unset": list(unset)}
        changed: Sequence[str] = (await self._call("SetSettings", parameters, SAVE_TIMEOUT)).get("changed") or []
        return changed

    # Snapshots.

    async def save_snapshot(self, data: bytes, *, scene: Optional[str] = None) -> None:
        """Keeps what the app shows, a picture (PNG, JPEG, GIF, WebP) or a text, while it is in the background.

        With scene, keeps what this scene inside the app shows."""
        self._session.need_supervisor("keep its snapshot")
        with state_parameters(data) as parameters:
            await self._call("SaveSnapshot", {**parameters, "scene": scene}, SAVE_TIMEOUT)

    async def save_snapshot_file(self, name: str, *, scene: Optional[str] = None) -> None:
        """The same with a file in TORPOR_STATE_DIRECTORY, by its name there, which is copied."""
        self._session.need_supervisor("keep its snapshot")
        await self._call("SaveSnapshot", {"file": name, "scene": scene}, SAVE_TIMEOUT)

    async def discard_snapshot(self, *, scene: Optional[str] = None) -> None:
        """Forgets the snapshot of the app or of a scene inside it, and has none taken before it enters the background
        again."""
        self._session.need_supervisor("keep its snapshot")
        await self._call("DiscardSnapshot", {"scene": scene}, SAVE_TIMEOUT)

    async def situation(self) -> Situation:
        """The state that the app is in, and its tasks."""
        self._session.need_supervisor("know its state")
        return Situation.read(await self._call("State", {}))

    # Messages.

    def _spawn(self, work: Awaitable[_Result]) -> asyncio.Future[_Result]:
        worker = asyncio.ensure_future(work)
        self._workers.add(worker)
        worker.add_done_callback(self._workers.discard)
        return worker

    async def _whole(self, work: Awaitable[_Result]) -> _Result:
        """Waits for what goes on to its end also when the caller is cancelled: half a call would break a connection."""
        worker = self._spawn(work)
        await asyncio.wait({worker})
        return worker.result()

    def _queue(self, message: Message) -> None:
        self._messages.put_nowait(lambda: self._handle(message))

    def _problem(self, sentence: str) -> None:
        _log.warning("%s", sentence)
        self._messages.put_nowait(lambda: self._tell(self._delegate.problem, sentence))

    async def _read_messages(self) -> None:
        waits, complained = pauses(), False
        while True:
            try:
                await self._read_connection()
            except NotPermitted as error:
                return self._problem(f"The supervisor does not take this process as the app's delegate: {error}")
            except AlreadyAttached as error:
                if not complained:
                    complained = True
                    self._problem(f"This App gets no messages while the app has another delegate: {error}")
            except (*_BROKEN, TorporError) as error:
                if self._attached.is_set():
                    self._attached.clear()
                    waits, complained = pauses(), False
                if not complained and isinstance(error, PermissionError):
                    complained = True
                    _log.error("%s", self._session.forbidden(error))
                    self._problem(self._session.forbidden(error))
                if not complained and not isinstance(error, (OSError, EOFError)):
                    complained = True
                    self._problem(f"Reconnecting to the supervisor: {error}")
            await asyncio.sleep(next(waits))

    async def _read_connection(self) -> None:
        connection = await _Connection.open(self._session.need_supervisor())
        try:
            await connection.send(self._session.attach_call())
            await self._did_attach(Situation.read(read_reply(await connection.receive())[0]))
            while True:
                parameters, more = read_reply(await connection.receive())
                if parameters.get("message") is not None:
                    message = Message.read(parameters["message"])
                    message.app = self
                    if self._session.is_new(message):
                        self._queue(message)
                if not more:
                    raise ConnectionError("the supervisor has ended the stream")
        finally:
            connection.close()

    async def _did_attach(self, situation: Situation) -> None:
        self._session.took(situation)
        self._attached.set()
        self._messages.put_nowait(lambda: self._tell(self._delegate.attached, situation))
        if self._session.tasks:
            async with self._calls.lock:
                await self._calls.prepare()

    async def _send_heartbeats(self, interval: float) -> None:
        while True:
            heartbeat()
            await asyncio.sleep(interval)

    async def _outcome(self, work: Callable[[], Any]) -> Tuple[Any, Optional[BaseException]]:
        """What a function or a coroutine of the app returned or raised. Raises CancelledError only where the caller is
        cancelled, as at the end of the context: one that the app itself has raised is an outcome."""
        try:
            result = work()
        except BaseException as error:
            return None, error
        if not inspect.isawaitable(result):
            return result, None

        async def caught() -> Tuple[Any, Optional[BaseException]]:
            try:
                return await result, None
            except BaseException as error:
                return None, error

        # In a task of its own, whose cancellation is not this one's.
        worker = asyncio.ensure_future(caught())
        try:
            await asyncio.wait({worker})
        except asyncio.CancelledError:
            worker.cancel()
            await asyncio.wait({worker})
            raise
        return worker.result()

    async def _tell(self, method: Callable[[Any], Any], what: Any) -> None:
        error = (await self._outcome(lambda: method(what)))[1]
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise error
        if error is not None:
            _log.error("A method of the delegate failed.", exc_info=error)

    async def _work(self) -> None:
        while True:
            work = await self._messages.get()
            try:
                await work()
            except Exception:
                _log.exception("A method of the delegate failed.")

    async def _handle(self, message: Message) -> None:
        self._unanswered = message.id
        self._time_matters.set()
        failed: Optional[str] = None
        result: Optional[str] = None
        returned, error = await self._outcome(lambda: self._hear(message))
        if error is None:
            try:
                result = result_of(returned, message)
            except TypeError as wrong:
                error = wrong
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            await self._answer_last(message, error)
            raise error
        if error is not None:
            _log.error("The delegate failed at %s.", message.name, exc_info=error)
            failed = failure(error)
        elif result is None:
            return
        try:
            await self.answer(message, failed, unhandled=result == "unhandled")
        except TorporError as refusal:
            self._problem(f"The answer to {message.name} was not taken: {refusal}")

    async def _answer_last(self, message: Message, error: BaseException) -> None:
        answer = last_answer(error, message)
        if answer is None or not self.supervised:
            return
        try:
            await asyncio.wait_for(self._answer(Session.answer(message, *answer)), LAST_ANSWER_TIMEOUT)
        except (TorporError, asyncio.TimeoutError) as refusal:
            _log.warning("The answer to %s was not taken before the program ended: %s", message.name, refusal)

    async def _hear(self, message: Message) -> Any:
        if message.name == "taskExpiring":
            task = self._running.get(message.parameters.get("token", 0))
            if task is not None:
                await task._expire()
        result = method_of(self._delegate, message)(message)
        return await result if inspect.isawaitable(result) else result

    async def _answer(self, parameters: Mapping[str, Any]) -> None:
        """Says it until the supervisor has heard it; whoever replaces it meanwhile counts it once."""
        call = call_bytes("Answer", parameters)
        async with self._answers.lock:
            for pause in pauses():
                await self._attached.wait()
                try:
                    await self._answers.call(call)
                    return
                except AlreadyAnswered:
                    return
                except InvalidParameter:
                    if parameters["result"] != "unhandled":
                        raise
                    # A supervisor that is older than the word: to that one the message is done.
                    call = call_bytes("Answer", {**parameters, "result": "done"})
                    continue
                except _BROKEN:
                    self._answers.close()
                await asyncio.sleep(pause)

    # Calls that are waited for.

    async def _begin(self, task: BackgroundTask) -> None:
        try:
            await self._whole(self._begin_whole(task))
        except asyncio.CancelledError:
            task._unwanted = True
            if task.token:
                self._spawn(self._end(task))
            raise

    async def _begin_whole(self, task: BackgroundTask) -> None:
        if self.supervised:
            async with self._calls.lock:
                task.token = int((await self._call_held("BeginTask", {"name": task.name}, CALL_TIMEOUT))["token"])
                self._session.tasks[task.token] = task.name
                self._began.set()
        else:
            task.token = self._session.own_token()
        self._running[task.token] = task
        if self.supervised and not self._keeps_time:
            self._keeps_time = True
            self._spawn(self._keep_time())
        self._time_matters.set()
        if task._unwanted:
            await self._end(task)

    async def _end(self, task: BackgroundTask) -> None:
        self._running.pop(task.token, None)
        if self._session.tasks.pop(task.token, None) is None:
            return
        try:
            await self._call("EndTask", {"token": task.token})
        except UnknownTask:
            pass

    async def _call(
        self, member: str, parameters: Mapping[str, Any], timeout: float = CALL_TIMEOUT
    ) -> Mapping[str, Any]:
        self._session.need_this_process()

        async def locked() -> Mapping[str, Any]:
            async with self._calls.lock:
                return await self._call_held(member, parameters, timeout)

        return await self._whole(locked())

    async def _call_held(self, member: str, parameters: Mapping[str, Any], timeout: float) -> Mapping[str, Any]:
        """Calls, again over a new connection where one breaks: every call here may be repeated."""
        call, until = call_bytes(member, parameters), time.monotonic() + timeout
        for pause in pauses():
            problem: BaseException
            try:
                return await asyncio.wait_for(self._calls.call(call), max(0.001, until - time.monotonic()))
            except asyncio.TimeoutError:
                problem = TimeoutError("no reply in time")
            except _BROKEN as error:
                self._calls.close()
                problem = error
            if time.monotonic() >= until:
                raise SupervisorGone(
                    f"The supervisor at {self._session.path} does not answer: {problem}"
                ) from problem
            await asyncio.sleep(min(pause, max(0.0, until - time.monotonic())))
        raise AssertionError("pauses have no end")

    async def _keep_time(self) -> None:
        """Has tasks expire where taskExpiring does not: a worker is not sent it, and it waits behind a message that is
        not answered, whose method may be what works for the task."""
        while True:
            self._time_matters.clear()
            if not self._has_to_keep_time:
                await self._time_matters.wait()
                continue
            try:
                left = time_to_expiry(await self._call("BackgroundTime", {}))
            except TorporError:
                left = None
            if left is None or left > 0:
                await asyncio.sleep(EXPIRY_INTERVAL if left is None else min(left, EXPIRY_INTERVAL))
                continue
            for task in list(self._running.values()):
                # An expiry handler may take its time, which is not that of the others.
                self._spawn(self._expire(task))
            await asyncio.sleep(0)

    @property
    def _has_to_keep_time(self) -> bool:
        if self._receives and self._unanswered is None:
            return False
        return any(not task.expired for task in self._running.values())

    async def _expire(self, task: BackgroundTask) -> None:
        try:
            await task._expire()
        except Exception:
            _log.exception("The expiry handler of the task %s failed.", task.name)

    async def _keep_tasks(self) -> None:
        """Without messages: notices that the supervisor was replaced."""
        while True:
            if not self._session.tasks:
                self._began.clear()
                await self._began.wait()
            await asyncio.sleep(0.1)
            try:
                async with self._calls.lock:
                    await self._calls.prepare()
            except (*_BROKEN, TorporError):
                pass
