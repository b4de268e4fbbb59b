// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Linux
import Varlink

/// What must hold once everything has settled.
extension Simulation {
    func checkInvariants() throws {
        // Timers still fire: an app may have another state by the time that the answer is read.
        for _ in 0..<8 {
            do {
                return try checkOnce()
            } catch let violation as Violation where violation.mayPass {
                note("once more: \(violation.sentence)")
            }
        }
        try checkOnce()
    }

    private func checkOnce() throws {
        let reply = try asked("List", .emptyObject)
        guard let list = reply["parameters"]?["apps"]?.arrayValue else { throw Violation("List answers \(reply)") }
        let logs = Set((try? File.list(root + "/log")) ?? [])
        let listed = apps.map { app in list.first { $0["name"]?.stringValue == app.name } }
        // Before anything else is asked: with each question time passes, and a timer may wake an app or suspend it.
        for case let (app, listed?) in zip(apps, listed) { try check(app, listed) }
        for (app, listed) in zip(apps, listed) {
            if let listed {
                try checkMail(of: app, listed)
            } else if let process = livingProcesses.first(where: { $0.app === app && !$0.isHelper }) {
                throw Violation("\(app.name) left the configuration, and process \(process.pid) of it lives")
            }
            try LogCheck(app, in: root + "/log", logs, mayLackEnd: hasWriteFaults || app.wasRemoved).run()
        }
        try checkDescriptors(Set(list.compactMap { $0["name"]?.stringValue }))
    }

    private var hasWriteFaults: Bool {
        let faults = withUnsafeBytes(of: sim_state().pointee.faults) { Array($0.bindMemory(to: UInt64.self)) }
        let kinds = [SIM_FAULT_SPACE, SIM_FAULT_DISK, SIM_FAULT_MEMORY, SIM_FAULT_DESCRIPTORS]
        return kinds.contains { faults[Int($0.rawValue)] > 0 }
    }

    private func check(_ app: AppModel, _ listed: JSON) throws {
        let state = listed["state"]?.stringValue ?? "?"
        let transition = listed["transition"]?.stringValue
        let living = livingProcesses.filter { $0.app === app && !$0.isHelper }
        let words = "\(app.name) is listed as \(state)\(transition.map { " (\($0))" } ?? "")"
        if let transition {
            throw Violation("\(words), after minutes of quiet still \(transition): \(listed)", mayPass: true)
        }
        switch state {
        case "not-running":
            if let process = living.first {
                throw Violation("\(words), and process \(process.pid) lives", mayPass: true)
            }
        case "suspended":
            if living.isEmpty { throw Violation("\(words), and no process of it lives", mayPass: true) }
            for process in living where !process.isStopped {
                throw Violation("\(words), and process \(process.pid) is not stopped", mayPass: true)
            }
        default:
            guard let main = living.first(where: { $0.isMain }) else {
                throw Violation("\(words), and it has no main process", mayPass: true)
            }
            if let pid = listed["pid"]?.intValue, pid != Int64(main.pid) {
                throw Violation("\(words) with process \(pid), and its main process is \(main.pid)", mayPass: true)
            }
            for process in living where process.isStopped {
                throw Violation("\(words), and process \(process.pid) is stopped", mayPass: true)
            }
        }
    }

    /// All that torpord has taken for an app was answered, or waits, or is kept as unhandled.
    private func checkMail(of app: AppModel, _ listed: JSON) throws {
        let mails = ledger.mails.enumerated().filter { $0.element.app === app && !$0.element.isForgotten }
        guard !mails.isEmpty else { return }
        let box = try numbers(of: asked("Mailbox", ["app": .string(app.name)])["parameters"]?["mail"])
        let unhandled = try numbers(
            of: asked("Unhandled", ["apps": [.string(app.name)], "payload": true])["parameters"]?["unhandled"]
        )
        for (number, mail) in mails {
            let places = box.count { $0 == number } + unhandled.count { $0 == number }
            if mail.outcome == .accepted, !mail.mayBeAnswered, places == 0 {
                throw Violation("mail \(number) of \(app.name) is lost: it was told to runs \(mail.runs)")
            }
            if mail.isAnswered, places > 0 { throw Violation("mail \(number) of \(app.name) was answered, and waits") }
            if places > 1 { throw Violation("mail \(number) of \(app.name) waits twice") }
            if mail.outcome == .refused, places > 0 {
                throw Violation("mail \(number) of \(app.name) was refused, and waits")
            }
        }
        let state = listed["state"]?.stringValue ?? "?"
        if ["active", "background"].contains(state), let first = box.first {
            throw Violation("\(app.name) is \(state), and mail \(first) waits", mayPass: true)
        }
    }

    private func numbers(of list: JSON?) -> [Int] {
        (list?.arrayValue ?? []).compactMap { $0["payload"]?["n"]?.intValue.map { Int($0) } }
    }

    // MARK: Descriptors

    /// torpord has open what it needs, each once, and nothing else.
    private func checkDescriptors(_ listed: Set<String>) throws {
        var bytes = [CChar](repeating: 0, count: 65_536)
        sim_torpord_descriptors(&bytes, bytes.count)
        let text = bytes.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        var counts: [String: Int] = [:]
        for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
            guard let space = line.firstIndex(of: UInt8(ascii: " ")) else { continue }
            let target = Substring(line[line.index(after: space)...])
            counts[target.hasPrefix("socket:") ? "socket" : String(target), default: 0] += 1
        }
        let names = counts.sorted { $0.key < $1.key }
        note("descriptors: \(names.map { "\($0.value) \(Self.lastComponent($0.key))" })")
        for (target, count) in names where target.hasPrefix("/") {
            // Of a launch that was under way when torpord was replaced there are two.
            let most = target.hasPrefix(root + "/pidfd/") ? 2 : 1
            if count > most { throw Violation("torpord has \(target) open \(count) times") }
            if target.hasPrefix(root + "/pidfd/"), target.hasSuffix("(deleted)") {
                throw Violation("torpord keeps the pidfd of a process that is gone: \(target)")
            }
            if target.hasPrefix("/memfd:made-up") { throw Violation("torpord keeps a file of /proc open") }
        }
        if sim_state().pointee.made_up > 0 { throw Violation("torpord keeps a file of /proc open") }
        // Its keeper, its control socket and the log; of each app that it knows, what the app is told and says by, and what it
        // listens at.
        let most = 3 + 3 * listed.count + Connection.open
        if let sockets = counts["socket"], sockets > most {
            throw Violation("torpord has \(sockets) sockets open, and needs \(most) at most")
        }
        for (kind, limit) in Self.anonymous {
            let count = counts["anon_inode:" + kind] ?? 0
            if count > limit { throw Violation("torpord has \(count) of \(kind) open, and needs \(limit) at most") }
        }
    }

    private static func lastComponent(_ path: String) -> Substring {
        path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path[path.utf8.index(after: $0)...] } ?? path[...]
    }

    /// Of these, torpord has a fixed number of its own. Signals have a second descriptor where the kernel refused one of
    /// them its priority.
    private static let anonymous = [
        ("[eventpoll]", 4), ("[signalfd]", 2), ("inotify", 2), ("[eventfd]", 16), ("[timerfd]", 2),
    ]
}
