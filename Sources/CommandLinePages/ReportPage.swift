// SPDX-License-Identifier: Apache-2.0

import Linux
package import TorporAPI

/// A termination report for people: the reason, the missed deadline, resource use, history and last stack.
package struct ReportPage {
    private let report: Report
    /// How this machine's kernel handles core dumps (/proc/sys/kernel/core_pattern); empty if unknown.
    private let corePattern: String

    package init(_ report: Report, corePattern: String) { (self.report, self.corePattern) = (report, corePattern) }

    package var text: String {
        var text = Terminal.coloured("\(report.app), run \(report.incarnation)", .bold)
        text += ": " + Terminal.coloured(report.reason, .red)
        if let code = report.code { text += " (0x\(String(code, radix: 16)))" }
        text += ", \(Times.timestamp(report.at))\n"
        let facts = facts
        let width = facts.map(\.0.count).max() ?? 0
        for (name, value) in facts {
            text += "  \(name):" + String(repeating: " ", count: width + 1 - name.count)
            text += Terminal.wrapped(Terminal.harmless(value), behind: width + 4) + "\n"
        }
        return text + timeline + threads + output
    }

    // MARK: Facts

    private var facts: [(String, String)] {
        var facts: [(String, String)] = []
        func add(_ name: String, _ value: String?) {
            if let value, !value.isEmpty { facts.append((name, value)) }
        }
        add("why", report.text)
        add("due", due)
        add("state", report.state + (report.transition.map { ", \($0)" } ?? ""))
        add("ended", ending)
        if let stage = report.stage {
            add("stage", stage + (report.errno.map { ", error \($0)" } ?? ""))
        } else if let errno = report.errno {
            add("errno", "\(errno)")
        }
        add("process", process)
        add("memory", memory)
        add("launch", report.launch.flatMap { Self.launch($0) })
        add("status", report.status)
        add("tasks", report.tasks.joined(separator: ", "))
        for lock in report.locks {
            var text = "\(lock.file) (\(lock.kind)"
            text += lock.holder.map { ", held by process \($0)" } ?? ""
            text += lock.waiter.map { ", process \($0) waited for it" } ?? ""
            add("lock", text + ")")
        }
        return facts
    }

    /// The missed deadline: `didEnterBackground within 5s; answered 312ms too late`.
    private var due: String? {
        guard let deadline = report.deadline else { return nil }
        var text = (report.due ?? deadline) + " within "
        text += report.deadlineMilliseconds.map { Times.duration(milliseconds: $0) } ?? "its deadline"
        if let extended = report.extendedMilliseconds {
            text += " (\(Times.duration(milliseconds: extended)) of it by extension)"
        }
        guard let late = report.lateMilliseconds else { return text }
        let time = Times.duration(milliseconds: late)
        return text + (report.answered ? "; it came \(time) too late" : "; still missing \(time) later, at the end")
    }

    private var ending: String? {
        if let signal = report.signal { return "by \(signal)" + core }
        return report.exitCode.map { "with exit status \($0)" }
    }

    /// A text that says whether there is a core dump, and where it is.
    private var core: String {
        guard report.coreDumped else { return "" }
        guard let first = corePattern.first else { return ", core dumped" }
        if first == "/" { return ", core dumped, as \(corePattern) (core(5) has the names)" }
        guard first == "|" else { return ", core dumped, as \(corePattern) in the folder in which it ran" }
        let program = corePattern.dropFirst().split(separator: " ").first.map(String.init) ?? ""
        if program.hasSuffix("/systemd-coredump") {
            return ", core dumped: ‘coredumpctl info\(report.pid.map { " \($0)" } ?? "")’ shows it"
        }
        return ", core dumped to \(program)"
    }

    private var process: String? {
        var parts: [String] = []
        if let pid = report.pid { parts.append("\(pid)") }
        guard report.pid != nil else { return nil }
        if let wall = report.wallSeconds { parts.append("ran for \(Times.duration(seconds: wall))") }
        if let cpu = report.cpuSeconds { parts.append("used \(Times.duration(seconds: cpu)) of processor time") }
        return parts.joined(separator: ", ")
    }

    private var memory: String? {
        var parts: [String] = []
        if let memory = report.memoryBytes { parts.append("\(Times.memory(bytes: memory)) at the end") }
        if let memory = report.maxMemoryBytes { parts.append("\(Times.memory(bytes: memory)) at most") }
        return parts.joined(separator: ", ")
    }

    /// Launch times: `exec after 1.1ms, first sign after 33.0ms, ready after 41.2ms`; nil if none is known.
    package static func launch(_ times: LaunchTimes, isOver: Bool = true) -> String? {
        // A message after `ready` is no part of the launch.
        let message = times.message.flatMap { $0 <= times.ready ?? $0 ? $0 : nil }
        let parts = [
            // Only commands that run before the fork delay it by 5 ms or more. Without such a delay, the time of the
            // fork says nothing, so leave it out.
            ("fork", times.planned.flatMap { $0 >= 5 ? $0 : nil }), ("exec", times.executed),
            ("first sign", times.contact), ("first message", message), ("ready", times.ready),
        ]
        let known = parts.compactMap { name, time in time.map { "\(name) after \(milliseconds($0))" } }
        let end = times.ready == nil && isOver ? ", never ready" : ""
        return known.isEmpty ? nil : known.joined(separator: ", ") + end
    }

    private static func milliseconds(_ value: Double) -> String {
        if value >= 1000 { return Times.duration(seconds: value / 1000) }
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)ms"
    }

    // MARK: Timeline

    private var timeline: String {
        guard report.timeline.contains(where: { $0.after != nil && $0.kind != "transition" && $0.name != "fork" })
        else {
            return ""
        }
        var text = "  timeline:\n"
        var told: [String: Double] = [:]
        for entry in report.timeline {
            guard let after = entry.after else {
                text += "             … \(entry.name ?? "some") more: ‘torpor history \(report.app)’\n"
                continue
            }
            var words = Self.words(entry)
            if entry.kind == "message", let name = entry.name { told[name] = after }
            if entry.kind.hasSuffix("answer"), let name = entry.name, let since = told[name] {
                words += ", after \(Self.milliseconds((after - since) * 1000))"
            }
            text += "  \(Self.column(after))  " + Terminal.wrapped(Terminal.harmless(words), behind: 14) + "\n"
        }
        return text
    }

    /// Seconds with three decimals, right-aligned; very long times as a duration.
    private static func column(_ seconds: Double) -> String {
        var text = Times.duration(seconds: seconds)
        if seconds < 100_000 {
            let whole = Int((seconds * 1000).rounded())
            let part = String(whole % 1000)
            text = "\(whole / 1000).\(String(repeating: "0", count: 3 - part.count))\(part)s"
        }
        return String(repeating: " ", count: max(0, 10 - text.count)) + text
    }

    private static func words(_ entry: TimelineEntry) -> String {
        let name = entry.name ?? ""
        switch (entry.kind, name) {
        case ("launch", "fork"): return "its process is being created"
        case ("launch", "exec"): return "its program runs"
        case ("launch", "contact"): return "first sign of life"
        case ("launch", _): return name
        case ("state", _): return "is \(name)"
        case ("transition", _): return "\(name) …"
        case ("message", _): return "told \(name)"
        case ("answer", _): return "answered \(name)"
        case ("failed-answer", _): return "answered \(name): failed"
        case ("pending-answer", _): return "answered \(name): pending"
        case ("missed", _): return "missed its deadline: \(name)"
        case ("signal", _): return "sent \(name)"
        case ("task-begin", _): return "began task \(name)"
        case ("task-end", _): return "ended task \(name)"
        case ("stopping", _): return "said that it is stopping"
        case ("supervisor", _): return "another torpord took over"
        case ("main", _): return "named another main process"
        case ("exit", _): return "its main process was gone"
        default: return "\(entry.kind) \(name)"
        }
    }

    // MARK: Threads and output

    private var threads: String {
        guard !report.threads.isEmpty else { return "" }
        var text = "  threads, when it was about to be ended:\n"
        for thread in report.threads {
            var facts = [Self.state(thread)]
            if let cpu = thread.cpuSeconds { facts.append("\(Times.duration(seconds: cpu)) of processor time") }
            let process = thread.pid.map { $0 == thread.tid || $0 == report.pid ? "" : ", of process \($0)" } ?? ""
            text += "    \(thread.tid) \(Terminal.harmless(thread.name))\(process): "
            text += facts.joined(separator: ", ") + "\n"
            text += Self.stack("kernel", thread.stack) + Self.stack("program", thread.userStack)
        }
        return text
    }

    private static func state(_ thread: ThreadStack) -> String {
        let channel = thread.waitChannel.map { Terminal.harmless($0) }
        switch thread.state {
        case "R": return "running"
        case "S": return "waits" + (channel.map { " in \($0)" } ?? "")
        case "D": return "waits uninterruptibly" + (channel.map { " in \($0)" } ?? "")
        case "T": return "stopped"
        case "t": return "stopped by a debugger"
        case "Z", "X": return "has ended"
        default: return "state \(thread.state)"
        }
    }

    private static func stack(_ name: String, _ frames: [String]) -> String {
        var text = ""
        for (index, frame) in frames.enumerated() {
            let head = index == 0 ? name + ":" : ""
            text += "      " + head + String(repeating: " ", count: 9 - head.count) + Terminal.harmless(frame) + "\n"
        }
        return text
    }

    private var output: String {
        var text = report.log.isEmpty ? "" : "  last output:\n"
        if let journal = report.journal, report.log.isEmpty {
            text += "  last output: in the journal (‘\(journal.command)’)\n"
        }
        for line in report.log { text += "    \(Terminal.harmless(line.text))\n" }
        return text
    }
}
