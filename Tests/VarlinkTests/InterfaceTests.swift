// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import TorporAPI
import Varlink
import VarlinkServer

@Suite struct InterfaceTests {
    @Test("every request is a method of the interface's text, and survives the wire")
    func requests() throws {
        let methods = VarlinkInterface(name: ManagerInterface.name, description: ManagerInterface.description).methods
        for request in Self.requests {
            #expect(methods.contains(request.call.member))
            #expect(try ManagerRequest(call: VarlinkCall(json: request.call.json)) == request)
        }
        #expect(methods.count == Set(Self.requests.map(\.call.member)).count)
    }

    @Test("numbers, texts and lists of any size are taken or refused, whatever the others are")
    func extremes() throws {
        var refused = 0
        for request in Self.requests {
            guard case .object(let call) = request.call.json, let parameters = call["parameters"] else { continue }
            for hostile in Self.variants(of: parameters) {
                let call = VarlinkCall(method: "\(ManagerInterface.name).\(request.call.member)", parameters: hostile)
                do { _ = try ManagerRequest(call: call) } catch { refused += 1 }
            }
        }
        // It is the process that would be gone: a trap in what decodes a request ends torpord.
        #expect(refused > 100)
    }

    /// The value with each of its parts in turn replaced by an extreme one.
    private static func variants(of value: JSON) -> [JSON] {
        switch value {
        case .int: return [.min, -1, 0, 1, 1 << 53, .max].map(JSON.int)
        case .string(let text): return ["", text + text, "\u{0}", "AAAAAAAA", "=", "1e999"].map(JSON.string)
        case .array(let items):
            let others = items.indices.flatMap { index in
                variants(of: items[index]).map { each in
                    var changed = items
                    changed[index] = each
                    return JSON.array(changed)
                }
            }
            return others + [.array([]), .array(Array(repeating: items.first ?? .null, count: 1000)), .array([.null])]
        case .object(let members):
            return members.members.flatMap { member in
                (variants(of: member.value) + [.null, .int(.min), .string(""), .array([])]).map { each in
                    var changed = members
                    changed[member.name] = each
                    return JSON.object(changed)
                }
            }
        default: return [.int(1), .string("true")]
        }
    }

    @Test("a parameter that a method does not have is refused by its name")
    func unknownParameters() throws {
        for (method, parameters, name) in [
            ("List", ["app": ["notes"]], "app"), ("Suspend", ["apps": ["a"], "froce": true], "froce"),
            ("Doctor", ["all": true], "all"), ("Logs", ["app": "a", "line": 7], "line"),
        ] as [(String, JSON, String)] {
            let call = VarlinkCall(method: "\(ManagerInterface.name).\(method)", parameters: parameters)
            let error = #expect(throws: FieldError.self) { try ManagerRequest(call: call) }
            #expect(error?.field == name)
            #expect(
                error?.problem.hasPrefix("is not a parameter of \(method), which takes ") == true,
                "\(error as Any)"
            )
        }
        let call = VarlinkCall(method: "\(ManagerInterface.name).Nothing", parameters: ["x": 1])
        #expect(try ManagerRequest(call: call) == nil)
    }

    @Test("types survive the wire, with all the names of the interface's text")
    func types() throws {
        var report = Report(app: "web", incarnation: 2, at: 5, reason: "watchdog", state: "active")
        report.locks = [LockInfo(file: "/f", kind: "flock", holder: 2, waiter: 3)]
        report.threads = [ThreadStack(tid: 1, name: "n", state: "S", stack: ["a"])]
        var summary = AppSummary(
            name: "web",
            state: "active",
            goal: "active",
            pid: 7,
            incarnation: 2,
            uptime: 1.5,
            lastExit: LastExit(reason: "signal", signal: "SIGKILL", at: 9),
            holds: ["task x"]
        )
        (summary.title, summary.titles, summary.icon) = ("T", ["de": "D"], "/i.svg")
        var status = AppStatus(summary: summary)
        status.reports = [report]
        status.processes = [ProcessInfo(pid: 7, parent: 1, state: "S", command: "c", threads: 2)]
        status.deadlines = [DeadlineInfo(name: "launch", limitMilliseconds: 1, remainingMilliseconds: nil)]
        status.container = ContainerInfo(name: "torpor-web", image: "i")
        status.container?.digest = "sha256:0"
        status.health = HealthInfo(check: "tcp 127.0.0.1:1", isKnown: true)
        status.sleep = SleepInfo(seconds: 2.5, awake: 200, processor: 1, pagedOut: 4096)
        (status.memoryLimit, status.countedMemory) = (5, CountedMemory(bytes: 4, .proportional))
        status.log = [LogLine(at: 1, text: "t")]
        status.sockets = [SocketInfo(name: "http", kind: "stream", address: "80")]
        (status.sockets[0].waiting, status.sockets[0].most, status.sockets[0].trouble) = (3, 4096, "t")
        (status.transfers, status.unfitSettings) = (2, ["port"])
        var transfer = TransferInfo(
            id: 7,
            app: "web",
            session: "s",
            direction: "download",
            url: "https://h/",
            file: "/f",
            state: "waiting",
            createdAt: 5
        )
        #expect(try TransferInfo(json: JSON.parse(transfer.json.serialised())) == transfer)
        (transfer.cause, transfer.bytes, transfer.total, transfer.rate, transfer.priority) = ("retry", 1, 2, 3, -4)
        (transfer.isDiscretionary, transfer.events, transfer.attempts, transfer.retryAt) = (true, false, 6, 8)
        (transfer.endedAt, transfer.status, transfer.sha256) = (9, 503, "ab")
        (transfer.reason, transfer.error) = ("http-status", "e")
        #expect(try TransferInfo(json: JSON.parse(transfer.json.serialised())) == transfer)
        status.snapshot = SnapshotInfo(kind: .png, bytes: 1, at: 2, incarnation: 3)
        let part = SnapshotPart(status.snapshot, data: [1, 2, 3])
        #expect(try SnapshotPart(json: part.json) == part)
        var place = JournalPlace(identifier: "web", units: ["torpor-apps.scope"], user: 1000)
        (place.supervisor, place.account, place.cgroup) = (0, "ada", "torpor-apps-1/web")
        #expect(try AppStatus(json: JSON.parse(status.json.serialised())) == status)
        status.journal = place
        status.reports[0].journal = place
        #expect(try AppStatus(json: JSON.parse(status.json.serialised())) == status)
        let event = EventRecord(at: 1, app: "web", kind: "state", text: "t", details: ["a": 1])
        #expect(try EventRecord(json: event.json) == event)
        let info = SupervisorInfo(
            version: "1",
            instance: 2,
            pid: 3,
            apps: 4,
            phase: "p",
            upgradeFailure: "u",
            configurationFailure: "c"
        )
        #expect(try SupervisorInfo(json: info.json) == info)
        let upgrade = UpgradeReply(ok: false, message: "m")
        #expect(try UpgradeReply(json: upgrade.json) == upgrade)
        let change = KeyChangeInfo(key: "grace", old: "5s", new: nil, effect: "live")
        var applied = AppliedApp(app: "web", kind: "changed", changes: [change], ok: false, message: "m")
        applied.error = "timeout"
        applied.pid = 3
        let diagnostic = DiagnosticInfo(file: "f", line: 1, column: 2, path: "p", message: "m", severity: "error")
        let reply = ApplyReply(apps: [applied], supervisor: [change], warnings: [diagnostic])
        #expect(try ApplyReply(json: JSON.parse(reply.json.serialised())) == reply)
        let result = VerbResult(app: "web", ok: false, state: "active", message: "m", error: "timeout")
        #expect(try VerbResult(json: result.json) == result)
        let asleep = VerbResult(app: "web", ok: true, state: "suspended", isNeverWoken: false)
        #expect(try VerbResult(json: asleep.json) == asleep)
        let lonely = VerbResult(app: "db", ok: true, state: "suspended", isNeverWoken: true, requiredBy: ["web"])
        #expect(try VerbResult(json: lonely.json) == lonely)
        // An older torpord sends no never_woken.
        #expect(try VerbResult(json: ["app": "web", "ok": true, "state": "suspended"]).isNeverWoken == nil)
        var memory = MemoryStatus(
            level: "warning",
            totalBytes: 8,
            availableBytes: 1,
            swapTotalBytes: 4,
            swapFreeBytes: 2
        )
        #expect(try MemoryStatus(json: JSON.parse(memory.json.serialised())) == memory)
        memory.trouble = "t"
        memory.policy = "p"
        (memory.somePercent, memory.fullPercent) = (1.5, 0.5)
        var holder = AppMemory(
            app: "web",
            state: "suspended",
            residentBytes: 3,
            swappedBytes: 4,
            priority: -5,
            evict: "auto",
            endsAtOnce: true
        )
        (holder.limitBytes, holder.protection) = (6, "p")
        memory.apps = [holder]
        memory.steps = [MemoryStep(rung: "tell", apps: ["a", "b"], bytes: nil, why: "w")]
        #expect(try MemoryStatus(json: JSON.parse(memory.json.serialised())) == memory)
        for (type, json) in [
            ("MemoryStatus", memory.json), ("AppMemory", holder.json), ("MemoryStep", memory.steps[0].json),
            ("Timer", TimerStatus(app: "a", name: "t", kind: "timer").json),
            ("App", summary.json), ("AppStatus", status.json), ("Report", report.json), ("Event", event.json),
            ("Result", result.json), ("KeyChange", change.json), ("Applied", applied.json),
            ("Diagnostic", diagnostic.json), ("LastExit", summary.lastExit!.json), ("Lock", report.locks[0].json),
            ("ThreadStack", report.threads[0].json), ("Process", status.processes[0].json),
            ("Transfer", transfer.json), ("Deadline", status.deadlines[0].json), ("LogLine", status.log[0].json),
            ("JournalPlace", place.json),
        ] {
            #expect(json.objectValue?.members.map(\.name) == Self.fields(of: type), "\(type)")
        }
    }

    @Test("a token is up to 16 hexadecimal digits, all of whose bits count")
    func tokens() throws {
        let token = RequestToken.random()
        #expect(RequestToken(text: token.text) == token && token.text.utf8.count == 16)
        #expect(RequestToken(text: "ff") == RequestToken(text: "00FF"))
        #expect(RequestToken(text: "ff") != RequestToken(text: "fe") && RequestToken(text: "1")?.value == 1)
        for text in ["", "0", "0000", "+2", "-2", "g", "10000000000000000"] { #expect(RequestToken(text: text) == nil) }
        let call = VarlinkCall(method: "io.torpor.Manager.Stop", parameters: ["apps": ["a"], "token": "x"])
        #expect(throws: FieldError(field: "token", problem: "must be 1 to 16 hexadecimal digits, and not zero")) {
            try ManagerRequest(call: call)
        }
    }

    /// The field names of a type in the interface's text.
    private static func fields(of type: String) -> [String] {
        guard let start = ManagerInterface.description.range(of: "type \(type) (") else { return [] }
        let rest = ManagerInterface.description[start.upperBound...]
        guard let end = rest.firstIndex(of: ")") else { return [] }
        return rest[..<end].split(separator: ",").map {
            String($0.split(separator: ":")[0]).trimmingCharacters(in: .whitespacesAndNewlines)
        }
    }
}
