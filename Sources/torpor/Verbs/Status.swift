import ArgumentParser
import Linux
import TorporAPI
import Varlink

struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Shows everything about one app; 3 if it is not running."
    )
    .examples(
        "torpor status web"
    )
    @OptionGroup var app: AppArgument
    @OptionGroup var options: GlobalOptions

    func run() throws { try PlainStatus(app: app.app, options: PlainOptions(options)).run() }
}

/// `status` without the argument parser.
struct PlainStatus {
    var app: String
    var options: PlainOptions

    func run() throws {
        let reply = try Manager(options).call(.status(app: app))
        var status = try Manager.read { () throws(FieldError) in try AppStatus(json: reply["status"] ?? .null) }
        var reading = JournalReading()
        reading.complete(&status)
        if options.json {
            Output.document(reading.isChanged ? status.json : reply["status"] ?? .null)
        } else {
            ThisProcess.write(Self.text(status))
        }
        if status.summary.state == "not-running", status.summary.transition == nil {
            throw Failure(status: .notRunning, message: nil)
        }
    }

    /// The page; `paint` gives text a colour.
    static func text(
        _ status: AppStatus,
        paint: (String, Terminal.Colour?) -> String = { Terminal.coloured($0, $1) }
    ) -> String {
        let app = status.summary
        var text = paint(app.name, .bold) + ": "
        text += paint(app.state, Terminal.colour(ofState: app.state, failed: app.failed))
        if let transition = app.transition { text += ", \(transition)" }
        if app.goal != app.state { text += ", goal \(app.goal)" }
        if app.failed { text += paint(", failed (‘torpor start’ or ‘torpor reset’ clears it)", .red) }
        if status.stopped { text += ", stopped by itself or by another" }
        if status.traced { text += ", traced: its deadlines are off" }
        if status.outdated { text += ", launched by an older configuration (‘torpor apply --diff’ says what changed)" }
        text += "\n"
        let facts = facts(status)
        let width = facts.map(\.0.count).max() ?? 0
        for (name, value) in facts {
            text += String(repeating: " ", count: width + 2 - name.count) + name + ": "
            text += Terminal.harmless(value) + "\n"
        }
        text += processes(status.processes)
        if !status.log.isEmpty { text += "\nlast output:\n" }
        if let journal = status.journal, status.log.isEmpty {
            text += "\noutput: in the journal (‘\(journal.command)’)\n"
        }
        for line in status.log { text += "  \(Terminal.harmless(line.text))\n" }
        if !status.reports.isEmpty { text += "\nlast reports:\n" }
        for report in status.reports {
            text += "  \(Times.timestamp(report.at)) run \(report.incarnation): \(report.reason)"
            if let sentence = report.text { text += ", \(Terminal.harmless(sentence))" }
            text += "\n"
        }
        return text
    }

    private static func facts(_ status: AppStatus) -> [(String, String)] {
        let app = status.summary
        var facts: [(String, String)] = []
        func add(_ name: String, _ value: String?) {
            if let value, !value.isEmpty { facts.append((name, value)) }
        }
        add("waits", status.heldBack)
        add("mailbox", status.mailbox == 0 ? nil : "\(status.mailbox) waiting")
        add("status", app.status)
        add("pid", app.pid.map { "\($0)" + (app.incarnation.map { ", run \($0)" } ?? "") })
        add("uptime", app.uptime.map { Times.duration(seconds: $0) })
        add("restarts", app.restarts == 0 ? nil : "\(app.restarts)")
        add("next restart", app.nextRestartMilliseconds.map { "in " + Times.duration(milliseconds: $0) })
        add("memory", app.memoryBytes.map { Times.memory(bytes: $0) })
        add("cpu", app.cpuSeconds.map { Times.duration(seconds: $0) })
        add("last exit", app.lastExit.map { $0.sentence + ($0.at.map { ", " + Times.timestamp($0) } ?? "") })
        add("held by", app.holds.joined(separator: ", "))
        for deadline in status.deadlines where deadline.name != "restart" {
            let left =
                deadline.remainingMilliseconds.map { Times.duration(milliseconds: $0) + " left" } ?? "stands still"
            let limit = deadline.limitMilliseconds.map { " of " + Times.duration(milliseconds: $0) } ?? ""
            add("deadline", "\(deadline.name), \(left)\(limit)")
        }
        add("launch", status.launch.flatMap { ReportPage.launch($0, isOver: app.transition != "launching") })
        add("watchdog", status.watchdogMilliseconds.map { "every " + Times.duration(milliseconds: $0) })
        add("ready", status.ready)
        add("requires", status.requires.joined(separator: ", "))
        add("required by", status.requiredBy.joined(separator: ", "))
        add("after", status.after.joined(separator: ", "))
        add("tags", status.tags.joined(separator: ", "))
        add("exec", status.exec.joined(separator: " "))
        add("configured", status.file.map { $0 + (status.line.map { ":\($0)" } ?? "") })
        add("state saved", status.archive.map(archive))
        add("set aside", status.archiveAside.map { "the state that " + archive($0) + " as \($0.path)" })
        add("snapshot", status.snapshot.map(snapshot))
        for socket in status.sockets { add("socket", socket.text) }
        add("cgroup", status.cgroup)
        let given = status.profileDone.joined(separator: ", ")
        add("share", status.profile.map { "that of \($0) apps" + (given.isEmpty ? "" : ": \(given)") })
        add("not had", status.profileMissing.joined(separator: "; "))
        return facts
    }

    private static func archive(_ archive: ArchiveInfo) -> String {
        "\(Times.memory(bytes: archive.bytes)), \(Times.timestamp(archive.at))"
    }

    private static func snapshot(_ snapshot: SnapshotInfo) -> String {
        let kind = snapshot.kind?.rawValue ?? "of an unknown kind"
        return "\(kind), \(Times.memory(bytes: snapshot.bytes)), \(Times.timestamp(snapshot.at)), run "
            + "\(snapshot.incarnation)"
    }

    /// Children indented below their parent.
    private static func processes(_ processes: [ProcessInfo]) -> String {
        guard !processes.isEmpty else { return "" }
        var text = "\nprocesses:\n"
        let known = Set(processes.map(\.pid))
        let children = Dictionary(grouping: processes, by: \.parent)
        var waiting = processes.filter { !known.contains($0.parent) || $0.parent == $0.pid }.reversed().map { ($0, 0) }
        var shown: Set<Int32> = []
        while let (process, depth) = waiting.popLast() {
            guard shown.insert(process.pid).inserted else { continue }
            let threads = process.threads > 1 ? ", \(process.threads) threads" : ""
            text += String(repeating: "  ", count: depth + 1)
            text += "\(process.pid) \(process.state) \(Terminal.harmless(process.command))\(threads)\n"
            for child in (children[process.pid] ?? []).reversed() { waiting.append((child, depth + 1)) }
        }
        return text
    }
}
