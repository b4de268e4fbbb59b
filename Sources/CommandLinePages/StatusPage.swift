// SPDX-License-Identifier: Apache-2.0

import Linux
package import TorporAPI

/// Everything about one app, for people.
package struct StatusPage {
    /// The last events, newest last.
    package var events: [EventRecord] = []
    /// Gives text a colour.
    package var paint: (String, Terminal.Colour?) -> String = { Terminal.coloured($0, $1) }
    /// The width to wrap at; nil: do not wrap.
    package var columns = Terminal.columns

    private let status: AppStatus

    package init(_ status: AppStatus) { self.status = status }

    package var text: String {
        let app = status.summary
        var text = paint(app.name, .bold) + ": "
        text += paint(app.state, Terminal.colour(ofState: app.state, failed: app.failed))
        if let transition = app.transition { text += ", \(transition)" }
        if app.goal != app.state { text += ", goal \(app.goal)" }
        if app.failed { text += paint(", failed (‘torpor start’ or ‘torpor reset’ clears it)", .red) }
        // While torpord suspends the app, its processes stop one after the other: do not attribute that to another
        // process.
        if status.stopped, app.transition != "suspending" {
            text += ", stopped by its own or another process's signal (‘torpor signal CONT \(app.name)’ continues it)"
        }
        if status.traced { text += ", traced: its deadlines are off" }
        if status.outdated { text += ", launched with an old configuration (‘torpor apply --diff’ says what changed)" }
        text += "\n"
        let facts = facts
        // The names are ASCII.
        let width = facts.map { $0.0.utf8.count }.max() ?? 0
        for (name, value) in facts {
            text += String(repeating: " ", count: width + 2 - name.utf8.count) + name + ": "
            text += Terminal.wrapped(Terminal.harmless(value), behind: width + 4, in: columns) + "\n"
        }
        text += Self.processes(status.processes)
        if let count = status.processesLeftOut { text += "  … and \(count) more\n" }
        if !events.isEmpty { text += "\nlast events:\n" }
        for event in events {
            let at = Times.timestamp(event.at)
            let sentence = Terminal.wrapped(Terminal.harmless(event.text), behind: at.count + 3, in: columns)
            text += "  " + paint(at, .dim) + " \(sentence)\n"
        }
        if !status.log.isEmpty { text += "\nlast output:\n" }
        if let journal = status.journal, status.log.isEmpty {
            text += "\noutput: in the journal (‘\(journal.command)’)\n"
        }
        for line in status.log { text += "  \(Terminal.harmless(line.text))\n" }
        if !status.reports.isEmpty { text += "\nlast reports:\n" }
        for report in status.reports {
            var line = "\(Times.timestamp(report.at)) run \(report.incarnation): \(report.reason)"
            if let sentence = report.text { line += ", \(Terminal.harmless(sentence))" }
            text += "  " + Terminal.wrapped(line, behind: 2, in: columns) + "\n"
        }
        return text
    }

    private var owner: String? {
        let name = status.summary.name
        return switch status.summary.owner {
        case "here":
            "this machine"
                + (status.summary.ownedMilliseconds.map { ", for " + Times.duration(milliseconds: $0) } ?? "")
        case "forced": "not this machine; a user runs it all the same (start --force)"
        case nil: nil
        default: "not this machine: nothing launches or wakes it (‘torpor own \(name)’)"
        }
    }

    private var facts: [(String, String)] {
        let app = status.summary
        var facts: [(String, String)] = []
        func add(_ name: String, _ value: String?) {
            if let value, !value.isEmpty { facts.append((name, value)) }
        }
        add("title", app.title(in: Languages.wanted))
        add("summary", app.summary(in: Languages.wanted))
        add("since", status.stateSince.map(Self.since))
        add("owner", owner)
        add("waits", status.heldBack)
        add("force-quit", status.forceQuit.map { "\($0) (‘torpor start \(app.name)’ does)" })
        add("suspended by", suspender)
        add("woken by", wakers)
        add("not woken by", status.notWokenBy.joined(separator: ", "))
        add("mailbox", status.mailbox == 0 ? nil : "\(status.mailbox) waiting")
        add("working on", work)
        let unfit = status.unfitSettings.joined(separator: ", ")
        add(
            "not set",
            unfit.isEmpty ? nil : "\(unfit) (invalid value: ‘torpor settings \(status.summary.name)’)"
        )
        add("data", status.dataFolder)
        add("bundle", status.bundle.map { $0 + (status.bundleVerified.map { ", verified: \($0)" } ?? "") })
        add("put back", status.bundlePutBack.map { "version \($0) did not come up twice" })
        add("badge", status.summary.badge.map { "\($0)" })
        add("transfers", status.transfers == 0 ? nil : "\(status.transfers): ‘torpor transfers \(status.summary.name)’")
        add("unhandled", status.unhandled == 0 ? nil : "\(status.unhandled): ‘torpor unhandled \(status.summary.name)’")
        add("status", app.status)
        add("pid", app.pid.map { "\($0)" + (app.incarnation.map { ", run \($0)" } ?? "") })
        add("uptime", app.uptime.map { Times.duration(seconds: $0) })
        add("restarts", app.restarts == 0 ? nil : "\(app.restarts)")
        add("next restart", app.nextRestartMilliseconds.map { "in " + Times.duration(milliseconds: $0) })
        add("asleep", asleep)
        add("memory", memory)
        add("cpu", app.cpuSeconds.map { Times.duration(seconds: $0) })
        add("last exit", app.exitSentence.map { $0 + (app.lastExit?.at.map { ", " + Times.timestamp($0) } ?? "") })
        if app.isSandboxed, app.pid == nil, app.lastExit?.reason == "exit-failure" {
            let verb = "‘torpor permissions \(app.name)’"
            add("hint", "what its sandbox denies may be why it failed: \(verb) shows what it may do")
        }
        if let scenes = status.summary.scenesInside {
            add("scenes", "\(scenes.sessions), \(scenes.live) connected")
        }
        add("held by", app.holds.joined(separator: ", "))
        for deadline in status.deadlines where deadline.name != "restart" && !isShownOtherwise(deadline) {
            let left =
                deadline.remainingMilliseconds.map { Times.duration(milliseconds: $0) + " left" } ?? "paused"
            let limit = deadline.limitMilliseconds.map { ", limit " + Times.duration(milliseconds: $0) } ?? ""
            add("deadline", "\(deadline.name), \(left)\(limit)")
        }
        add("launch", status.launch.flatMap { ReportPage.launch($0, isOver: app.transition != "launching") })
        add("watchdog", status.watchdogMilliseconds.map { "every " + Times.duration(milliseconds: $0) })
        add("ready", status.ready)
        add("health", health)
        add("requires", status.requires.joined(separator: ", "))
        add("required by", status.requiredBy.joined(separator: ", "))
        add("after", status.after.joined(separator: ", "))
        add("tags", status.tags.joined(separator: ", "))
        add("categories", app.categories.joined(separator: ", "))
        add("language", app.language)
        add("container", status.container?.name)
        add("image", status.container.map { $0.image + ($0.digest.map { "@" + $0 } ?? "") })
        add("ports", status.container?.ports.joined(separator: ", "))
        add("networks", status.container?.networks.joined(separator: ", "))
        add("protected", status.protection?.text)
        add("sandbox", status.sandbox.map { $0.mode == "agent" ? "as code of strangers" : "yes" })
        for permission in status.sandbox?.permissions ?? [] { add(permission.state, Self.permission(permission)) }
        for sentence in status.sandbox?.unenforced ?? [] { add("not enforced", sentence) }
        add("last denied", status.sandbox.flatMap(denial))
        add("exec", status.exec.joined(separator: " "))
        add("configured", status.file.map { $0 + (status.line.map { ":\($0)" } ?? "") })
        add("state saved", status.archive.map(Self.archive))
        for aside in status.archivesAside {
            add("set aside", "its saved state, " + Self.archive(aside) + ", as \(aside.path)")
        }
        add("snapshot", status.snapshot.map(snapshot))
        for socket in status.sockets { add("socket", socket.text) }
        for announcement in status.announcements { add("announced", announcement.text) }
        add("cgroup", status.cgroup)
        let given = status.profileDone.joined(separator: ", ")
        add("share", status.profile.map { "that of \($0) apps" + (given.isEmpty ? "" : ": \(given)") })
        add("not applied", status.profileMissing.joined(separator: "; "))
        return facts
    }

    private func denial(_ sandbox: SandboxInfo) -> String? {
        guard let last = sandbox.lastDenial else { return nil }
        return "it \(last.text)" + (sandbox.denials.map { $0 > 1 ? ", \($0) denials since torpord started" : "" } ?? "")
    }

    private static func permission(_ permission: PermissionInfo) -> String {
        let ports = permission.ports.map { "\($0)" }.joined(separator: ", ")
        let purpose = permission.purpose(in: Languages.wanted)
        return permission.name + (ports.isEmpty ? "" : " (ports \(ports))") + ": \(purpose)"
    }

    private static func since(_ time: Int64) -> String {
        "\(Times.timestamp(time)), for \(Times.duration(milliseconds: max(0, Times.now - time) / 1000))"
    }

    private var health: String? {
        // That another process has stopped it is in the first line.
        guard let health = status.health else {
            return status.stopped ? nil : status.summary.unhealthy.map { "it \($0)" }
        }
        let check = health.check
        if let problem = status.summary.unhealthy { return "it \(problem) (\(check))" }
        return (health.isKnown ? "good" : "not checked yet") + " (\(check))"
    }

    /// The app's memory. With a limit, it is the memory that counts for the limit.
    private var memory: String? {
        guard let bytes = status.countedMemory?.bytes ?? status.summary.memoryBytes else { return nil }
        let limit = status.memoryLimit.map { " of " + Times.memory(bytes: $0) } ?? ""
        let measure =
            switch status.countedMemory?.measure {
            case .cgroup: " (of its cgroup)"
            case .proportional: " (PSS: shared pages count once)"
            case .resident: " (resident: shared pages count for each process)"
            case nil: ""
            }
        let pagedOut = status.sleep?.pagedOut ?? 0
        return Times.memory(bytes: bytes) + limit + measure
            + (pagedOut > 0 ? ", \(Times.memory(bytes: pagedOut)) paged out" : "")
    }

    /// How long the app was suspended in this run, as a time and as a part of the run, and how much processor time that
    /// saved.
    private var asleep: String? {
        guard let sleep = status.sleep, case let asleep = sleep.seconds, asleep > 0, let uptime = status.summary.uptime,
            uptime > 0
        else {
            return nil
        }
        let share = Int((min(1, asleep / uptime) * 100).rounded())
        // Do not show a saving of less than 0.1 s.
        let saved = sleep.processorSaved.flatMap { $0 >= 0.1 ? $0 : nil }.map { Times.duration(seconds: $0) }
        return "\(Times.duration(seconds: asleep)) of this run (\(share) %)"
            + (saved.map { ": about \($0) of processor time saved" } ?? "")
    }

    /// The deadline of background time. It is shown with the suspension that follows it, not by itself.
    private var backgroundTime: DeadlineInfo? {
        status.suspendedBy == nil ? nil : status.deadlines.first { $0.name == "background-time" }
    }

    private func isShownOtherwise(_ deadline: DeadlineInfo) -> Bool {
        deadline == backgroundTime || deadline.name == "message" && status.work != nil
    }

    /// The message that the app works on, since when, and what happens if it does not answer.
    private var work: String? {
        guard let work = status.work else { return nil }
        let message = work.message.map { " \($0) (\(work.topic ?? ""))" } ?? ""
        let attempt = work.attempt.map { $0 > 1 ? ", attempt \($0)" : "" } ?? ""
        let time = Times.duration(milliseconds: work.workingMilliseconds)
        let end =
            work.isLate
            ? ", later than message_deadline: it is told nothing else before it answers"
            : work.remainingMilliseconds.map { ", " + Times.duration(milliseconds: $0) + " left" } ?? ""
        return "\(work.name)\(message) for \(time)\(attempt)\(end)"
    }

    /// What will suspend the app, and when.
    private var suspender: String? {
        let left = backgroundTime?.remainingMilliseconds.map { Times.duration(milliseconds: $0) }
        switch status.suspendedBy {
        case nil: return nil
        case .eventTime: return "the supervisor, " + (left.map { "in \($0)" } ?? "soon") + ": an event woke it"
        case .launch: return "the supervisor, " + (left.map { "in \($0)" } ?? "soon") + ": launched to be suspended"
        case .asked: return "the supervisor, as soon as nothing keeps it awake"
        case .policy: return "a policy" + (left.map { ", in \($0) at the earliest" } ?? "")
        case .nobody: return "only you: no policy is in charge (‘torpor help policy list’)"
        }
    }

    private var wakers: String? {
        let isAsleep = status.summary.state == "suspended"
        if status.wokenBy.isEmpty, isAsleep {
            let users = status.requiredBy.joined(separator: " or ")
            let use = users.isEmpty ? "" : ", or using \(users), which requires it"
            return "only you (‘torpor resume’, ‘torpor foreground’)" + use
        }
        return status.wokenBy.joined(separator: ", ")
    }

    private static func archive(_ archive: ArchiveInfo) -> String {
        "\(Times.memory(bytes: archive.bytes)), \(Times.timestamp(archive.at))"
    }

    private func snapshot(_ snapshot: SnapshotInfo) -> String {
        let kind = snapshot.kind?.rawValue ?? "of an unknown kind"
        return "\(kind), \(Times.memory(bytes: snapshot.bytes)), \(Times.timestamp(snapshot.at)), run "
            + "\(snapshot.incarnation) (‘torpor snapshot \(status.summary.name)’)"
    }

    /// The process tree, children indented below their parent.
    private static func processes(_ processes: [ProcessInfo]) -> String {
        guard !processes.isEmpty else { return "" }
        var text = "\nprocesses:\n"
        // Nearly every app has a few processes, and none here more than 500: so each is searched for among all, which
        // takes a command that has just begun less time than making its first set and dictionary.
        var isShown = [Bool](repeating: false, count: processes.count)
        var waiting: [(index: Int, depth: Int)] = []
        for index in processes.indices.reversed() {
            let process = processes[index]
            let isChild = processes.contains { $0.pid == process.parent && $0.pid != process.pid }
            if !isChild { waiting.append((index, 0)) }
        }
        while let (index, depth) = waiting.popLast() {
            guard !isShown[index] else { continue }
            isShown[index] = true
            let process = processes[index]
            let threads = process.threads > 1 ? ", \(process.threads) threads" : ""
            text += String(repeating: "  ", count: depth + 1)
            text += "\(process.pid) \(process.state) \(Terminal.harmless(process.command))\(threads)\n"
            for child in processes.indices.reversed() where processes[child].parent == process.pid {
                waiting.append((child, depth + 1))
            }
        }
        return text
    }
}
