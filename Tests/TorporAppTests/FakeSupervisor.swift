// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import TorporAPI
import Varlink

/// The supervisor's side of an app's socket, as small as it can be: it tells one message at a time, and can die and come
/// back with what it knew.
final class FakeSupervisor: @unchecked Sendable {
    let folder: String
    var path: String { folder + "/app" }

    private let lock = NSLock()
    private var listener: Descriptor?
    private var connections: [Int32: Descriptor] = [:]
    private var stream: Int32?
    private var waiting: [AppMessage] = []
    private var inFlight: AppMessage?
    private var isTold = false
    private var nextID: Int64 = 1
    private var nextToken: Int64 = 1
    private var heard: [AppRequest] = []
    private var answered: [AppAnswer] = []
    private var tasks: [AppTask] = []
    private var script = Script()

    /// How it behaves.
    struct Script: Sendable {
        var state = "not-running"
        var transition: String? = "launching"
        /// Refuses to attach with this error.
        var refusal: String?
        /// Dies after it has heard that many answers, each time before it says so.
        var diesAtAnswers: Set<Int> = []
        /// Dies when it is asked this, before it answers; once.
        var diesAtMember: String?
        /// It is older than this result of an answer.
        var unknownResult: AppAnswer.Result?
        /// Its answer to BackgroundTime.
        var backgroundTime: JSON = ["remaining_ms": 1500, "expiry_warning_ms": 1000]
    }

    init(_ script: Script = Script()) throws {
        var template = Array((NSTemporaryDirectory() + "ta-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw Errno.ioError }
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        self.script = script
        try comeBack()
    }

    /// What a process of the app has in its environment.
    var environment: [String: String] {
        [
            "TORPOR_APP": "web", "TORPOR_APP_SOCKET": path, "TORPOR_STATE_DIRECTORY": folder,
            "TORPOR_LAUNCH_OPTIONS": #"{"reason":"event","foreground":false,"previous_termination":"evicted"}"#,
        ]
    }

    func remove() {
        die()
        try? FileManager.default.removeItem(atPath: folder)
    }

    // MARK: What a test does

    func tell(_ name: String, _ parameters: JSON = .emptyObject, deadline: Int64? = 5000) {
        lock.withLock {
            waiting.append(
                AppMessage(id: nextID, name: name, deadlineMilliseconds: deadline, parameters: parameters)
            )
            nextID += 1
            tellNext()
        }
    }

    /// Every connection ends, and nobody listens.
    func die() {
        lock.withLock {
            // The thread that accepts closes it.
            if let listener { try? Sockets.shutdownReading(listener.raw) }
            listener = nil
            for connection in connections.values { try? Sockets.shutdownReading(connection.raw) }
            for connection in connections.values { try? Sockets.shutdownWriting(connection.raw) }
            connections = [:]
            stream = nil
            isTold = false
        }
    }

    func comeBack() throws {
        try? File.remove(path)
        let fresh = try Sockets.listen(path: path)
        lock.withLock { listener = fresh }
        let handed = Handed(descriptor: fresh)
        Thread.detachNewThread { [self] in accept(handed.descriptor) }
    }

    /// Looks until it is so, at most 10 s. It lets the pool's threads go meanwhile: the app needs them.
    func wait(
        for what: String,
        _ isSo: (_ answers: [AppAnswer], _ calls: [AppRequest]) -> Bool
    ) async throws {
        let end = Clock.monotonic() + .seconds(60)
        while !isSo(answers, calls) {
            guard Clock.monotonic() < end else { throw Missing(what: what, heard: "\(calls)") }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    struct Missing: Error {
        var what: String
        var heard: String
    }

    func waitForAnswers(_ count: Int) async throws {
        try await wait(for: "\(count) answers") { answers, _ in answers.count >= count }
    }

    var answers: [AppAnswer] { lock.withLock { answered } }
    var calls: [AppRequest] { lock.withLock { heard } }
    var attaches: [AttachRequest] { calls.compactMap { if case .attach(let request) = $0 { request } else { nil } } }

    /// One thread's at a time.
    private struct Handed: @unchecked Sendable { let descriptor: Descriptor }

    // MARK: The service

    private func accept(_ listener: Descriptor) {
        while (try? Descriptor.wait(listener.raw, timeout: nil)) != nil {
            let socket = try? Sockets.accept(listener.raw)
            let isListening = lock.withLock {
                guard self.listener === listener else { return false }
                if let socket { connections[socket.raw] = socket }
                return true
            }
            guard isListening else { return }
            guard let socket else { continue }
            let handed = Handed(descriptor: socket)
            Thread.detachNewThread { [self] in serve(handed.descriptor) }
        }
    }

    private func serve(_ socket: Descriptor) {
        var framer = MessageFramer()
        while true {
            while let message = try? framer.next() {
                guard let json = try? JSON.parse(message), let call = try? VarlinkCall(json: json),
                    let request = try? AppRequest(call: call), answer(request, call, socket)
                else { return }
            }
            guard (try? Descriptor.wait(socket.raw, timeout: nil)) == true,
                let bytes = try? Descriptor.read(socket.raw, maximum: 1 << 20)
            else { return }
            if bytes.isEmpty {
                lock.withLock { connections[socket.raw] = nil }
                return
            }
            framer.append(bytes[...])
        }
    }

    /// False when it died of it.
    private func answer(_ request: AppRequest, _ call: VarlinkCall, _ socket: Descriptor) -> Bool {
        lock.lock()
        heard.append(request)
        if script.diesAtMember == call.member {
            script.diesAtMember = nil
            lock.unlock()
            die()
            return false
        }
        defer { lock.unlock() }
        switch request {
        case .attach(let attach):
            if let refusal = script.refusal {
                send(socket.raw, ["message": "it may not"], error: refusal)
                return true
            }
            stream = socket.raw
            var situation = AppSituation(
                app: "web",
                incarnation: 1,
                state: script.state,
                transition: script.transition
            )
            situation.tasks = tasks
            send(socket.raw, situation.json, continues: true)
            isTold = inFlight.map { $0.id <= attach.after ?? 0 } ?? false
            tellNext()
        case .openURL(let url, _):
            send(socket.raw, ["app": "notes", "id": 1, "outcome": "woken", "message": .string(url)])
        case .canOpen(let scheme): send(socket.raw, ["can": .bool(scheme == "notes")])
        case .settings: send(socket.raw, ["settings": ["port": 80]])
        case .startTransfer(let request):
            guard request.url.hasPrefix("http") else {
                send(socket.raw, ["message": "no"], error: AppInterface.ErrorName.failed)
                return true
            }
            send(socket.raw, ["id": 17])
        case .transfers(let session, _):
            let info = TransferInfo(
                id: 17,
                app: "web",
                session: session ?? "default",
                direction: "download",
                url: "https://h/",
                file: "/f",
                state: "running",
                createdAt: 1
            )
            send(socket.raw, ["transfers": [info.json]])
        case .scheduleAlert(let request):
            guard !request.title.isEmpty else {
                send(socket.raw, ["message": "no"], error: AppInterface.ErrorName.failed)
                return true
            }
            let info = AlertInfo(number: 1, app: "web", id: request.id ?? "alert-1", state: "scheduled", title: "t")
            send(socket.raw, ["alert": info.json])
        case .alerts:
            let info = AlertInfo(number: 1, app: "web", id: "tea", state: "open", title: "Tea")
            send(socket.raw, ["alerts": [info.json], "badge": 3])
        case .cancelAlert: send(socket.raw, ["numbers": [1]])
        case .setBadge: send(socket.raw, .emptyObject)
        case .permissions: send(socket.raw, ["permissions": [PermissionStanding(name: "gpu", state: "deny").json]])
        case .requestPermission(let name):
            guard name == "camera" else {
                send(socket.raw, ["message": "no permission"], error: AppInterface.ErrorName.failed)
                return true
            }
            var reply = PermissionReply(state: "ask")
            (reply.isAskedNow, reply.nextAt) = (true, 7)
            send(socket.raw, reply.json)
        case .cancelTransfer, .answerLogin, .setNeedsRefresh, .setActivity, .endActivity: send(socket.raw, .emptyObject)
        case .setSettings: send(socket.raw, ["changed": ["port"]])
        case .post(let request):
            guard request.app == "notes" else {
                send(socket.raw, ["name": .string(request.app)], error: AppInterface.ErrorName.unknownApp)
                return true
            }
            send(socket.raw, ["id": 5, "change": "added", "outcome": "told", "message": nil])
        case .subscribe: send(socket.raw, .emptyObject)
        case .take(let request):
            let all = (1...3).map { number in
                MailInfo(
                    id: number,
                    topic: "news",
                    name: "didReceiveNotification",
                    payload: ["number": .int(number)],
                    sender: "notes",
                    count: 1,
                    firstAt: 7,
                    lastAt: 8
                )
            }
            let left = all.filter { !request.done.contains($0.id) }
            send(socket.raw, ["mail": .array(left.prefix(Int(request.max ?? 9)).map(\.json)), "more": true])
        case .answer(let answer):
            if answered.contains(where: { $0.id == answer.id && $0.result != .pending }) {
                send(socket.raw, ["id": .int(answer.id)], error: AppInterface.ErrorName.alreadyAnswered)
                return true
            }
            if answer.result == script.unknownResult {
                send(socket.raw, ["parameter": "result"], error: VarlinkErrorName.invalidParameter)
                return true
            }
            answered.append(answer)
            if answer.result != .pending { inFlight = nil }
            if script.diesAtAnswers.remove(answered.count) != nil {
                lock.unlock()
                die()
                lock.lock()
                return false
            }
            send(socket.raw, .emptyObject)
            tellNext()
        case .beginTask(let name):
            tasks.append(AppTask(token: nextToken, name: name))
            send(socket.raw, ["token": .int(nextToken), "remaining_ms": 30_000])
            nextToken += 1
        case .endTask(let token):
            let known = tasks.contains { $0.token == token }
            tasks.removeAll { $0.token == token }
            send(socket.raw, .emptyObject, error: known ? nil : AppInterface.ErrorName.unknownTask)
        case .claimTasks(let tokens):
            send(socket.raw, ["tasks": .array(tasks.filter { tokens.contains($0.token) }.map(\.json))])
        case .backgroundTime: send(socket.raw, script.backgroundTime)
        case .saveState(let data, _, _): send(socket.raw, ["bytes": .int(Int64(data?.utf8.count ?? 0))])
        case .saveSnapshot(let data, _, _): send(socket.raw, ["bytes": .int(Int64(data?.utf8.count ?? 0))])
        case .discardState, .discardSnapshot: send(socket.raw, .emptyObject)
        case .state: send(socket.raw, AppSituation(app: "web", incarnation: 1, state: "background").json)
        }
        return true
    }

    private func tellNext() {
        guard let stream else { return }
        if inFlight == nil, !waiting.isEmpty {
            inFlight = waiting.removeFirst()
            isTold = false
        }
        guard let inFlight, !isTold else { return }
        isTold = true
        send(stream, ["message": inFlight.json], continues: true)
    }

    private func send(_ socket: Int32, _ parameters: JSON, continues: Bool = false, error: String? = nil) {
        let response = VarlinkResponse(parameters: parameters, continues: continues, error: error)
        _ = try? Sockets.send(socket, response.json.serialised() + [0], wait: true)
    }
}
