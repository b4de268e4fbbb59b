// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
package import Testing
import TorporAPI
package import Varlink

/// Apps that hear their lifecycle on their own socket: a blocking client of `io.torpor.App` in Python, and how tests read
/// what it heard.
///
/// A program of a test begins with `from delegate import *` and ends with `obey(Delegate(…))`:
///
///     obey(Delegate(didEnterBackground=later(2), willResignActive=hold))
///
/// answers done to everything but those two. An answer is a string (`"done"`, `"failed"`), the parameters of Answer as
/// a dictionary without the id, `hold` (none, until somebody says `d.answer(id)`), or a function of the message that
/// returns one of these. `obey` runs what ``Daemon/ask(_:app:at:)`` says on the main thread, where the delegate is `d`:
/// `d.begin("upload")`, `d.end(token)`, `d.call("SaveState", data=…)`, `d.answer(7, "failed", text="…")`, `d.leave()`.
///
/// What happens is in two files of the test's folder: `rec.APP` has a line each (`message 3 didEnterBackground`,
/// `answered 3 done`), `heard.APP` the same with everything in it, which ``Daemon/heard(_:)`` reads.
package enum Delegates {
    /// An app on demand, ready when it has answered its launch messages.
    package static let head = """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        launch = "on-demand"
        ready = "delegate"
        restart = "never"

        """

    /// An answer that records what it is given back.
    package static let restoring = """
        restoreState=lambda m: (record("restored " + open(m["parameters"]["path"]).read()[:40]), "done")[1]
        """

    /// The files of a test whose app is a delegate that gives these answers: keywords of `Delegate` in Python.
    ///
    /// - Parameter before: Python that runs before it attaches.
    package static func files(_ answers: String = "", before: String = "") -> [String: String] {
        ["delegate.py": library, "app.py": "from delegate import *\n\(before)\nobey(Delegate(\(answers)))\n"]
    }

    /// `delegate.py`.
    package static let library = #"""
        import base64, glob, json, threading, tp
        from tp import *

        def hold(message):
            """No answer, until somebody gives one."""
            return None

        def later(seconds, answer="done"):
            """The answer after a while."""
            def wait_for_it(message):
                time.sleep(seconds)
                return answer
            return wait_for_it

        def once(answer):
            """This answer the first time, done from then on."""
            given = []
            def give(message):
                if given:
                    return "done"
                given.append(True)
                return answer(message) if callable(answer) else answer
            return give

        def report(what, line=None, **fields):
            """Into both files."""
            fields.update(what=what, at_us=time.monotonic_ns() // 1000, pid=os.getpid(),
                          incarnation=int(os.environ.get("TORPOR_INCARNATION", "0")))
            fd = os.open(HERE + "/heard." + APP, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            os.write(fd, (json.dumps(fields) + "\n").encode())
            os.close(fd)
            record(line or what)

        class Refused(Exception):
            """An error of the interface: `name` is its last part."""
            def __init__(self, error, parameters):
                super().__init__(error, parameters)
                self.name = error.split(".")[-1]
                self.parameters = parameters

        class Connection:
            """One connection to the app's socket."""
            def __init__(self, path=None):
                self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self.socket.connect(path or os.environ["TORPOR_APP_SOCKET"])
                self.rest = b""

            def send(self, method, /, more=False, **parameters):
                call = {"method": "io.torpor.App." + method, "parameters": parameters}
                if more:
                    call["more"] = True
                self.raw(json.dumps(call).encode() + b"\0")

            def raw(self, data):
                self.socket.sendall(data)

            def receive(self, timeout=20):
                """The parameters of the next reply."""
                self.socket.settimeout(timeout)
                while b"\0" not in self.rest:
                    data = self.socket.recv(65536)
                    if not data:
                        raise ConnectionResetError("the supervisor has closed the connection")
                    self.rest += data
                text, self.rest = self.rest.split(b"\0", 1)
                reply = json.loads(text)
                if reply.get("error"):
                    raise Refused(reply["error"], reply.get("parameters") or {})
                return reply.get("parameters") or {}

            def call(self, method, /, **parameters):
                self.send(method, **parameters)
                return self.receive()

            def close(self):
                self.socket.close()

        class Delegate:
            """Attaches at once and answers each message, on a thread of its own."""
            def __init__(self, default="done", reconnect=True, attach=True, **answers):
                self.default = default
                self.answers = answers
                self.reconnect = reconnect
                self.leaving = False
                self.incarnation = self.last = self.stream = None
                self.tasks = {}
                # Answers do not wait for calls that take their time.
                self.connections = {"calls": None, "answers": None}
                self.locks = {"calls": threading.RLock(), "answers": threading.RLock()}
                # Its answers may call it before anything else here goes on.
                import __main__
                __main__.d = self
                if attach:
                    self.attach()

            def attach(self):
                threading.Thread(target=self.listen, daemon=True).start()

            def leave(self):
                """Closes the delegate's connection and does not come back."""
                self.leaving = True
                self.stream.socket.shutdown(socket.SHUT_RDWR)

            # Calls

            def connect(self):
                """A connection, however long the supervisor takes to come back."""
                end = time.monotonic() + 20
                while True:
                    try:
                        return Connection()
                    except OSError:
                        if time.monotonic() > end:
                            raise
                        time.sleep(0.01)

            def call(self, method, /, **parameters):
                """A call, again when the supervisor was replaced meanwhile; what it gave and what it refused is recorded."""
                line = "answers" if method == "Answer" else "calls"
                with self.locks[line]:
                    while True:
                        try:
                            if self.connections[line] is None:
                                self.connections[line] = self.connect()
                                if self.tasks and line == "calls":
                                    self.connections[line].call("ClaimTasks", tokens=list(self.tasks))
                            reply = self.connections[line].call(method, **parameters)
                            if line == "calls":
                                report("reply", "%s ok" % method, method=method, reply=reply)
                            return reply
                        except (ConnectionError, socket.timeout):
                            if self.connections[line]:
                                self.connections[line].close()
                            self.connections[line] = None
                        except Refused as error:
                            if line == "calls":
                                report("refused", "%s %s" % (method, error.name), method=method, error=error.name,
                                       reply=error.parameters)
                            raise

            def attempt(self, method, **parameters):
                """A call whose error is no exception: the reply, or the error's name."""
                try:
                    return self.call(method, **parameters)
                except Refused as error:
                    return error.name

            def begin(self, name):
                token = self.call("BeginTask", name=name)["token"]
                self.tasks[token] = name
                return token

            def end(self, token):
                self.tasks.pop(token, None)
                return self.attempt("EndTask", token=token)

            def save(self, data):
                return self.attempt("SaveState", data=base64.b64encode(data).decode())

            def answer(self, id, result="done", **parameters):
                """Answers a message; that it was answered already is as good."""
                parameters = {k: v for k, v in parameters.items() if v is not None}
                reply = self.attempt("Answer", id=id, result=result, **parameters)
                report("answered", "answered %d %s" % (id, result if isinstance(reply, dict) else reply),
                       id=id, result=result, reply=reply)

            # Messages

            def listen(self):
                while not self.leaving:
                    try:
                        self.stream = self.connect()
                        known = {}
                        if self.incarnation is not None:
                            known = {"incarnation": self.incarnation, "tasks": list(self.tasks)}
                            if self.last is not None:
                                known["after"] = self.last
                        self.stream.send("Attach", more=True, **known)
                        how = self.stream.receive()
                        self.incarnation = how.get("incarnation")
                        report("attached", "attached %s" % how.get("state"), reply=how)
                        while True:
                            message = self.stream.receive(timeout=None).get("message")
                            if message:
                                self.hear(message)
                    except Refused as error:
                        report("refused", "Attach %s" % error.name, method="Attach", error=error.name,
                               reply=error.parameters)
                        return
                    except (OSError, ValueError) as error:
                        report("lost", text=str(error))
                        self.stream.close()
                        if not self.reconnect:
                            return

            def hear(self, message):
                id, name = message["id"], message["name"]
                self.last = id
                report("message", "message %d %s" % (id, name), id=id, name=name,
                       deadline_ms=message.get("deadline_ms"), parameters=message.get("parameters") or {})
                answer = self.answers.get(name, self.default)
                if callable(answer):
                    answer = answer(message)
                if isinstance(answer, str):
                    answer = {"result": answer}
                if answer is not None:
                    self.answer(id, **answer)

        def obey(delegate):
            """Does what the test asks, until it is ended; the delegate is `d` there."""
            import __main__
            world = __main__.__dict__
            if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
                on("SIGTERM", lambda: os._exit(0))
            record("up")
            while True:
                for path in sorted(glob.glob(HERE + "/ask." + APP + ".*")):
                    if path.endswith(".tmp"):
                        continue
                    text = open(path).read()
                    os.remove(path)
                    got = {"value": None}
                    try:
                        try:
                            got["value"] = eval(compile(text, path, "eval"), world)
                        except SyntaxError:
                            exec(compile(text, path, "exec"), world)
                        text = json.dumps(got)
                    except Exception as error:
                        text = json.dumps({"error": repr(error)})
                    path = path.replace("/ask.", "/got.")
                    with open(path + ".tmp", "w") as file:
                        file.write(text)
                    os.rename(path + ".tmp", path)
                time.sleep(0.003)
        """#
}

/// Something that a delegate of a test did or heard.
package struct Heard {
    /// `attached`, `message`, `answered`, `reply`, `refused` or `lost`.
    package var what: String
    /// When, on the monotonic clock.
    package var at: Duration
    package var pid: Int32
    package var incarnation: Int64
    /// Of a message and its answer.
    package var id: Int64?
    /// Of a message.
    package var name: String?
    package var deadlineMilliseconds: Int64?
    package var parameters: JSON
    /// Of an answer.
    package var result: String?
    /// Of a call.
    package var method: String?
    /// The last part of an error's name.
    package var error: String?
    package var reply: JSON

    package init(line: String) throws {
        let json = try JSON.parse(line)
        let fields = try Fields(json)
        what = try fields.string("what")
        at = .microseconds(try fields.int("at_us"))
        pid = Int32(try fields.int("pid"))
        incarnation = try fields.int("incarnation")
        id = try fields.optionalInt("id")
        name = try fields.optionalString("name")
        deadlineMilliseconds = try fields.optionalInt("deadline_ms")
        parameters = json["parameters"] ?? .emptyObject
        result = try fields.optionalString("result")
        method = try fields.optionalString("method")
        error = try fields.optionalString("error")
        reply = json["reply"] ?? .null
    }
}

extension Daemon {
    /// All that the delegates of an app did and heard, in order.
    package func heard(_ app: String = "web") throws -> [Heard] {
        let text = (try? String(contentsOfFile: directory + "/heard." + app, encoding: .utf8)) ?? ""
        // What has no newline yet is still being written.
        return try text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map {
            try Heard(line: String($0))
        }
    }

    /// Has the app of a test run this Python, and waits until it has.
    ///
    /// - Returns: the value, where it is an expression.
    @discardableResult
    package func ask(
        _ python: String,
        app: String = "web",
        at location: SourceLocation = #_sourceLocation
    ) throws -> JSON {
        let name = "\(app).\(Clock.monotonic().components.seconds).\(UInt64.random(in: 0..<(1 << 53)))"
        let got = directory + "/got." + name
        try request(python, as: name)
        try eventually("\(app) has run \(python)", at: location) { File.exists(got) }
        let answer = try JSON.parse(String(contentsOfFile: got, encoding: .utf8))
        if let error = answer["error"]?.stringValue { throw Trouble("\(python): \(error)") }
        return answer["value"] ?? .null
    }

    /// Has the app of a test run this Python, whenever that may be: it need not run now.
    package func tellLater(_ python: String, app: String = "web") throws {
        try request(python, as: "\(app).later.\(UInt64.random(in: 0..<(1 << 53)))")
    }

    private func request(_ python: String, as name: String) throws {
        let path = directory + "/ask." + name
        try File.write(path + ".tmp", python)
        try File.rename(path + ".tmp", path)
    }

    /// The names of the messages that an app got, in order.
    package func messages(_ app: String = "web", incarnation: Int64? = nil) throws -> [String] {
        try heard(app).filter { $0.what == "message" && (incarnation ?? $0.incarnation) == $0.incarnation }
            .compactMap(\.name)
    }

    /// Waits until an app has got a message so often, and gives the last of these.
    @discardableResult
    package func waitForMessage(
        _ name: String,
        app: String = "web",
        count: Int = 1,
        at location: SourceLocation = #_sourceLocation
    ) throws -> Heard {
        var found: [Heard] = []
        try eventually("\(app) hears \(name)", at: location) {
            found = try heard(app).filter { $0.what == "message" && $0.name == name }
            return found.count >= count
        }
        return found[count - 1]
    }
}
