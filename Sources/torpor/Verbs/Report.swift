import ArgumentParser
import Linux
import TorporAPI
import Varlink

struct Reports: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Shows termination reports: why apps ended when nobody had asked for it."
    )

    @Argument(
        help: ArgumentHelp("Only this app's.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.apps(words) }
    )
    var app: String?
    @OptionGroup var options: GlobalOptions

    func run() throws {
        let reply = try Manager(options).call(.reports(app: app))
        var reports = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("reports") { json throws(FieldError) in try Report(json: json) }
        }
        var reading = JournalReading()
        for index in reports.indices { reading.complete(&reports[index]) }
        if options.json {
            let read = JSON.array(reports.map(\.json))
            return Output.document(reading.isChanged ? read : reply["reports"] ?? [])
        }
        ThisProcess.write(
            reports.isEmpty ? "no reports\n" : reports.map { Self.text($0) }.joined(separator: "\n")
        )
    }

    static func text(_ report: Report) -> String {
        var text = Terminal.coloured("\(report.app), run \(report.incarnation)", .bold)
        text += ": " + Terminal.coloured(report.reason, .red)
        if let code = report.code { text += " (0x\(String(code, radix: 16)))" }
        text += ", \(Times.timestamp(report.at))\n"
        for (name, value) in facts(report) { text += "  \(name): \(Terminal.harmless(value))\n" }
        for lock in report.locks {
            let waiter = lock.waiter.map { ", process \($0) waits for it" } ?? ""
            text += "  lock: \(Terminal.harmless(lock.file)) (\(lock.kind)\(waiter))\n"
        }
        if !report.log.isEmpty { text += "  last output:\n" }
        if let journal = report.journal, report.log.isEmpty {
            text += "  last output: in the journal (‘\(journal.command)’)\n"
        }
        for line in report.log { text += "    \(Terminal.harmless(line.text))\n" }
        for thread in report.threads {
            text += "  thread \(thread.tid) \(Terminal.harmless(thread.name)) (\(thread.state))\n"
            for frame in thread.stack { text += "    \(Terminal.harmless(frame))\n" }
        }
        return text
    }

    private static func facts(_ report: Report) -> [(String, String)] {
        var facts: [(String, String)] = []
        if let sentence = report.text { facts.append(("why", sentence)) }
        if let code = report.exitCode { facts.append(("exit code", "\(code)")) }
        if let signal = report.signal { facts.append(("signal", signal + (report.coreDumped ? ", core dumped" : ""))) }
        if let stage = report.stage {
            facts.append(("stage", stage + (report.errno.map { ", error \($0)" } ?? "")))
        } else if let errno = report.errno {
            facts.append(("errno", "\(errno)"))
        }
        if let deadline = report.deadline {
            let limit = report.deadlineMilliseconds.map { Times.duration(milliseconds: $0) } ?? "none"
            let used = report.usedMilliseconds.map { ", used \(Times.duration(milliseconds: $0))" } ?? ""
            facts.append(("deadline", "\(deadline) \(limit)\(used)"))
        }
        facts.append(("state", report.state + (report.transition.map { ", \($0)" } ?? "")))
        if let pid = report.pid { facts.append(("pid", "\(pid)")) }
        if let status = report.status { facts.append(("status", status)) }
        if let wall = report.wallSeconds { facts.append(("ran", Times.duration(seconds: wall))) }
        if let cpu = report.cpuSeconds { facts.append(("cpu", Times.duration(seconds: cpu))) }
        if let memory = report.memoryBytes { facts.append(("memory", Times.memory(bytes: memory))) }
        if let memory = report.maxMemoryBytes { facts.append(("most memory", Times.memory(bytes: memory))) }
        if !report.tasks.isEmpty { facts.append(("tasks held", report.tasks.joined(separator: ", "))) }
        return facts
    }
}
