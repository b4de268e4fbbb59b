# SPDX-License-Identifier: Apache-2.0
"""A supervisor's side of io.torpor.App for tests of the client libraries: what is told, asked and broken is up to a test.

It keeps to the rules of the interface: one message in flight, an answer counts once, tasks end with their connection
unless the supervisor was replaced meanwhile (`replace`), which lets go of every connection at once.
"""

import base64
import json
import os
import socket
import threading
import time
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

Json = Dict[str, Any]
BOUND = 10.0


class Refusal(Exception):
    def __init__(self, name: str, **parameters: Any) -> None:
        super().__init__(name)
        self.name = name
        self.parameters = parameters


class Connection:
    def __init__(self, stream: socket.socket) -> None:
        self.stream = stream
        self.closed = False

    def send(self, reply: Json) -> None:
        self.send_bytes(json.dumps(reply).encode() + b"\0")

    def send_bytes(self, data: bytes) -> None:
        try:
            self.stream.sendall(data)
        except OSError:
            pass

    def close(self) -> None:
        self.closed = True
        try:
            self.stream.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class FakeSupervisor:
    def __init__(self, path: str) -> None:
        self.path = path
        self.changed = threading.Condition()
        self.listener: Optional[socket.socket] = None
        self.connections: Set[Connection] = set()
        self.delegate: Optional[Connection] = None
        self.incarnation = 1
        self.state = "inactive"
        self.messages: List[Json] = []
        self.sent = 0
        self.answers: Dict[int, Json] = {}
        self.pending: List[Json] = []
        self.tasks: Dict[int, Tuple[str, Optional[Connection]]] = {}
        self.last_token = 0
        self.remaining: Optional[int] = None
        self.expiry_warning: Optional[int] = 2000
        self.archive: Optional[bytes] = None
        self.snapshot: Optional[bytes] = None
        # Of scenes inside the app, by their names; a supervisor whose app has none says nothing of them.
        self.scenes: Optional[Dict[str, str]] = None
        self.scene_archives: Dict[str, bytes] = {}
        self.scene_snapshots: Dict[str, bytes] = {}
        self.opened: List[Tuple[str, str]] = []
        self.posted: List[Json] = []
        self.subscribed: List[Json] = []
        self.mail: List[Json] = [{"id": number, "topic": "news", "payload": [number], "sender": "db"} for number in (1, 2, 3, 4)]
        self.transfers: Dict[int, Json] = {}
        self.alerts: List[Json] = []
        self.badge = 0
        self.requested: List[str] = []
        self.refreshed: List[str] = []
        self.activity: Optional[Json] = None
        self.logins: List[Tuple[int, Json]] = []
        self.theme: Any = "light"
        self.limit = 16 << 20
        self.calls: List[Tuple[str, Json]] = []
        self.refusals: List[Tuple[str, Refusal]] = []
        self.deaf: Set[str] = set()
        self.results = {"done", "failed", "pending", "unhandled"}
        self.start()

    # What a test does.

    def start(self) -> None:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(self.path)
        listener.listen(64)
        self.listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def stop(self) -> None:
        with self.changed:
            listener, self.listener = self.listener, None
            gone = list(self.connections)
            self.delegate = None
            self.tasks = {token: (name, None) for token, (name, _) in self.tasks.items()}
            self.connections.clear()
        if listener is not None:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            os.unlink(self.path)
        for connection in gone:
            connection.close()

    def replace(self, pause: float = 0.0) -> None:
        """All connections break, and the next supervisor knows what this one knew."""
        self.stop()
        if pause:
            time.sleep(pause)
        with self.changed:
            # What was sent and perhaps not read is sent again to those who did not get it.
            self.start()

    def tell(self, name: str, /, deadline_ms: Optional[int] = 5000, **parameters: Any) -> int:
        with self.changed:
            number = len(self.messages) + 1
            self.messages.append(
                {"id": number, "name": name, "deadline_ms": deadline_ms, "parameters": parameters}
            )
            self._advance()
            return number

    def answer(self, number: int) -> Json:
        self.wait_until(lambda: number in self.answers, f"message {number} is answered")
        return self.answers[number]

    def told(self, name: str, /, **parameters: Any) -> Json:
        """Tells and waits for the answer."""
        return self.answer(self.tell(name, **parameters))

    def wait_until(self, condition: Any, what: str) -> None:
        end = time.monotonic() + BOUND
        with self.changed:
            while not condition():
                left = end - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"it did not come to be that {what}; calls: {self.calls[-20:]}")
                self.changed.wait(min(left, 0.02))

    def wait_attached(self) -> None:
        self.wait_until(lambda: self.delegate is not None, "a delegate is attached")

    def count(self, member: str) -> int:
        return sum(1 for name, _ in self.calls if name == member)

    def refuse_next(self, member: str, name: str, **parameters: Any) -> None:
        with self.changed:
            self.refusals.append((member, Refusal(name, **parameters)))

    # How it answers.

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                stream, _ = listener.accept()
            except OSError:
                return
            connection = Connection(stream)
            with self.changed:
                if self.listener is not listener:
                    stream.close()
                    return
                self.connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        buffer = b""
        while True:
            try:
                data = connection.stream.recv(65536)
            except OSError:
                data = b""
            if not data:
                break
            buffer += data
            while b"\0" in buffer:
                text, buffer = buffer.split(b"\0", 1)
                self._take(connection, json.loads(text.decode("utf-8")))
        with self.changed:
            if connection in self.connections:
                # It was closed by the other side: its tasks end.
                self.connections.discard(connection)
                self.tasks = {t: (n, c) for t, (n, c) in self.tasks.items() if c is not connection}
                if self.delegate is connection:
                    self.delegate = None
            self.changed.notify_all()
        connection.stream.close()

    def _take(self, connection: Connection, call: Json) -> None:
        member = call["method"].rpartition(".")[2]
        with self.changed:
            if connection.closed:
                return
            parameters = call.get("parameters", {})
            self.calls.append((member, parameters))
            try:
                for index, (name, refusal) in enumerate(self.refusals):
                    if name == member:
                        del self.refusals[index]
                        raise refusal
                reply = getattr(self, "_" + member)(connection, **parameters)
                if member not in self.deaf:
                    connection.send({"parameters": reply, **({"continues": True} if call.get("more") else {})})
                if member == "Attach":
                    self._advance()
            except Refusal as refusal:
                connection.send(
                    {
                        "error": refusal.name if "." in refusal.name else "io.torpor.App." + refusal.name,
                        "parameters": {"message": f"{refusal.name} by the test", **refusal.parameters},
                    }
                )
            self.changed.notify_all()

    def _advance(self) -> None:
        """Sends the next message when the one before is answered."""
        if self.delegate is None or self.sent >= len(self.messages):
            return
        if self.sent and self.sent not in self.answers:
            return
        message = self.messages[self.sent]
        self.sent += 1
        self.delegate.send({"parameters": {"message": message}, "continues": True})

    def _list(self) -> List[Json]:
        return [{"token": token, "name": name} for token, (name, _) in self.tasks.items()]

    def _Attach(
        self,
        connection: Connection,
        incarnation: Optional[int] = None,
        after: Optional[int] = None,
        tasks: Optional[List[int]] = None,
    ) -> Json:
        if self.delegate is not None:
            raise Refusal("AlreadyAttached", pid=1)
        self.delegate = connection
        for token in tasks or []:
            if token in self.tasks and self.tasks[token][1] is None:
                self.tasks[token] = (self.tasks[token][0], connection)
        # The one in flight again, unless it was got.
        if self.sent and self.sent not in self.answers and (incarnation != self.incarnation or (after or 0) < self.sent):
            self.sent -= 1
        return {"message": None, **self._State(connection)}

    def _Answer(self, connection: Connection, id: int, result: str, **more: Any) -> Json:
        if result not in self.results:
            raise Refusal("org.varlink.service.InvalidParameter", parameter="result")
        answer = {"result": result, **{k: v for k, v in more.items() if v not in (None, [])}}
        if id in self.answers:
            raise Refusal("AlreadyAnswered", id=id)
        if id != self.sent:
            raise Refusal("NotInFlight", id=id, expected=self.sent)
        if result == "pending":
            self.pending.append(answer)
        else:
            self.answers[id] = answer
            self._advance()
        return {}

    def _BeginTask(self, connection: Connection, name: str) -> Json:
        self.last_token += 1
        self.tasks[self.last_token] = (name, connection)
        return {"token": self.last_token, "remaining_ms": self.remaining}

    def _EndTask(self, connection: Connection, token: int) -> Json:
        if self.tasks.pop(token, None) is None:
            raise Refusal("UnknownTask", token=token)
        return {}

    def _ClaimTasks(self, connection: Connection, tokens: List[int]) -> Json:
        for token in tokens:
            if token in self.tasks:
                self.tasks[token] = (self.tasks[token][0], connection)
        return {"tasks": [task for task in self._list() if task["token"] in tokens]}

    def _BackgroundTime(self, connection: Connection) -> Json:
        return {"remaining_ms": self.remaining, "expiry_warning_ms": self.expiry_warning}

    def _sent(self, data: Optional[str], file: Optional[str]) -> bytes:
        """What is to be kept."""
        if data is not None:
            if len(data) > 512 * 1024:
                raise Refusal("org.varlink.service.InvalidParameter", parameter="data")
            archive = base64.b64decode(data, validate=True)
        else:
            assert file is not None and "/" not in file
            with open(os.path.join(os.path.dirname(self.path), file), "rb") as stream:
                archive = stream.read()
        if len(archive) > self.limit:
            raise Refusal("TooLarge", limit=self.limit)
        return archive

    def _SaveState(
        self, connection: Connection, data: Optional[str] = None, file: Optional[str] = None, scene: Optional[str] = None
    ) -> Json:
        archive = self._sent(data, file)
        if scene is None:
            self.archive = archive
        else:
            self.scene_archives[scene] = archive
        return {"bytes": len(archive)}

    def _DiscardState(self, connection: Connection, scene: Optional[str] = None) -> Json:
        if scene is None:
            self.archive = None
        else:
            self.scene_archives.pop(scene, None)
        return {}

    def _OpenURL(self, connection: Connection, url: str, token: str) -> Json:
        if url.partition(":")[0] != "notes":
            raise Refusal("NoHandler", url=url, message=f"no app opens {url}")
        self.opened.append((url, token))
        return {"app": "notes", "id": 1, "outcome": "woken", "message": None}

    def _Post(self, connection: Connection, app: str, topic: str, token: str, **more: Any) -> Json:
        if app == "none":
            raise Refusal("UnknownApp", message=f"there is no app {app}")
        if topic == "other":
            raise Refusal("NotSubscribed", app=app, topic=topic, message=f"{app} does not accept the topic {topic}")
        if topic == "much":
            raise Refusal("MailboxFull", app=app, message=f"the mailbox of {app} is full")
        self.posted.append({"app": app, "topic": topic, "token": token, **more})
        # Of topics that cancel out, the second message has no number.
        number = None if topic == "net" else len(self.posted)
        return {"id": number, "change": "added", "outcome": "told", "message": None}

    def _Subscribe(self, connection: Connection, topic: str, **more: Any) -> Json:
        if topic.startswith("torpor."):
            raise Refusal("org.varlink.service.InvalidParameter", parameter="topic", message="topic cannot be used")
        self.subscribed.append({"topic": topic, **more})
        return {}

    def _Take(
        self, connection: Connection, max: Optional[int] = None, keep: bool = False, done: Sequence[int] = (), only: Sequence[int] = ()
    ) -> Json:
        self.mail = [message for message in self.mail if message["id"] not in done]
        chosen = [message for message in self.mail if not only or message["id"] in only]
        chosen = chosen[:max]
        if not keep:
            self.mail = [message for message in self.mail if message not in chosen]
        return {"mail": chosen, "more": False}

    def _CanOpen(self, connection: Connection, scheme: str) -> Json:
        if scheme == "secret":
            raise Refusal("NotPermitted", message="it may not")
        return {"can": scheme == "notes"}

    def _StartTransfer(self, connection: Connection, url: str, token: str, **order: Any) -> Json:
        if not url.startswith("http"):
            raise Refusal("Failed", message=f"{url} is of neither http nor https")
        number = next((n for n, transfer in self.transfers.items() if transfer["token"] == token), len(self.transfers) + 1)
        self.transfers[number] = {"id": number, "url": url, "token": token, **order}
        return {"id": number}

    def _Transfers(self, connection: Connection, session: Optional[str] = None, after: int = 0) -> Json:
        found = [t for t in self.transfers.values() if session in (None, t["session"]) and t["id"] > after]
        # A reply has few of them, so that clients have to ask for the rest.
        return {"transfers": found[:1], "more": len(found) > 1}

    def _CancelTransfer(self, connection: Connection, id: int) -> Json:
        if self.transfers.pop(id, None) is None:
            raise Refusal("Failed", message=f"there is no transfer {id}")
        return {}

    def _ScheduleAlert(self, connection: Connection, title: str, **more: Any) -> Json:
        if not title:
            raise Refusal("Failed", message="title must be one line")
        name = more.get("id") or f"alert-{len(self.alerts)}"
        self.alerts = [alert for alert in self.alerts if alert.get("id") != name] + [{"title": title, **more}]
        return {"alert": {"number": 1, "app": "web", "id": name, "state": "scheduled", "title": title}}

    def _CancelAlert(self, connection: Connection, ids: Optional[List[str]] = None) -> Json:
        for name in ids or []:
            if not any(alert.get("id") == name for alert in self.alerts):
                raise Refusal("Failed", message=f"there is no alert {name}", reason="unknown")
        self.alerts = [alert for alert in self.alerts if ids is not None and alert.get("id") not in ids]
        return {"numbers": []}

    def _Alerts(self, connection: Connection) -> Json:
        return {"alerts": self.alerts, "badge": self.badge}

    def _SetBadge(self, connection: Connection, count: int) -> Json:
        self.badge = count
        return {}

    def _Permissions(self, connection: Connection) -> Json:
        return {"permissions": [{"name": "camera", "state": "ask"}, {"name": "files:/a b", "state": "allow"},
                                {"name": "gpu", "state": "deny"}]}

    def _RequestPermission(self, connection: Connection, name: str) -> Json:
        self.requested.append(name)
        if name not in ("camera", "gpu"):
            raise Refusal("Failed", message=f"fake asks for no permission {name}")
        if name == "gpu":
            return {"state": "deny", "asked": False, "next_at": None, "message": None}
        isFirst = self.requested.count(name) == 1
        return {"state": "ask", "asked": isFirst, "next_at": None if isFirst else 7, "message": None if isFirst else "wait"}

    def _SetNeedsRefresh(self, connection: Connection, names: List[str]) -> Json:
        if not names:
            raise Refusal("Failed", message="names is empty")
        self.refreshed += names
        return {}

    def _SetActivity(self, connection: Connection, type: str, **more: Any) -> Json:
        if " " in type:
            raise Refusal("Failed", message="the type has a space")
        self.activity = {"type": type, **more}
        return {}

    def _EndActivity(self, connection: Connection) -> Json:
        self.activity = None
        return {}

    def _Settings(self, connection: Connection) -> Json:
        return {"settings": {"port": 8000, "theme": self.theme, "quota": None}}

    def _SetSettings(
        self, connection: Connection, values: Optional[Json] = None, unset: Optional[List[str]] = None
    ) -> Json:
        wanted = {**(values or {}), **{name: "light" for name in unset or []}}
        if list(wanted) != ["theme"]:
            raise Refusal("Failed", message="port is not for the app to set", reason="not-permitted")
        before, self.theme = self.theme, wanted["theme"]
        return {"changed": ["theme"] if before != self.theme else []}

    def _AnswerLogin(self, connection: Connection, id: int, **login: Any) -> Json:
        self.logins.append((id, login))
        return {}

    def _SaveSnapshot(
        self, connection: Connection, data: Optional[str] = None, file: Optional[str] = None, scene: Optional[str] = None
    ) -> Json:
        snapshot = self._sent(data, file)
        if scene is None:
            self.snapshot = snapshot
        else:
            self.scene_snapshots[scene] = snapshot
        return {"bytes": len(snapshot)}

    def _DiscardSnapshot(self, connection: Connection, scene: Optional[str] = None) -> Json:
        if scene is None:
            self.snapshot = None
        else:
            self.scene_snapshots.pop(scene, None)
        return {}

    def _State(self, connection: Connection) -> Json:
        scenes = None if self.scenes is None else [{"name": n, "state": s} for n, s in self.scenes.items()]
        return {
            **({} if scenes is None else {"scenes": scenes}),
            "app": "fake",
            "incarnation": self.incarnation,
            "state": self.state,
            "transition": None,
            "options": {"reason": "test"},
            "tasks": self._list(),
        }
