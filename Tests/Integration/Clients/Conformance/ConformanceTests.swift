// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import MockLogind
import Testing
import TorporAPI
import Varlink

/// What apps are told is the same in every language, word for word.
@Suite("One scenario in all languages", .serialized)
struct ConformanceTests {
    /// All that the app records.
    static let told = [
        // A launch into the foreground.
        "willFinishLaunching foreground", "didFinishLaunching", "didBecomeActive",
        // An interruption, and its end.
        "willResignActive", "didBecomeActive",
        // Asked and told while it is in use.
        "openURL notes:1", "settingsDidChange web.conf", "identityDidChange account", "didReceiveEvent jobs seven",
        "didReceiveEvent left over", "didReceiveRemoteNotification push hello",
        // To the background with an upload that takes for ever, and back.
        "willResignActive", "didEnterBackground", "taskExpiring upload", "willEnterForeground", "didBecomeActive",
        // Stopped, and continued.
        "willResignActive", "didEnterBackground", "resumed after a gap",
        // It saves again; evicted while it was stopped, and launched into the background, with its state.
        "didEnterBackground", "willFinishLaunching background", "restoreState 3", "didFinishLaunching",
        "didEnterBackground",
        "willEnterForeground", "didBecomeActive",
        // Interrupted while torpord dies, and used again.
        "willResignActive", "didBecomeActive",
        // The end.
        "willTerminate stopped",
    ]

    @Test(
        "launches, interruption, a task that runs over, a stop, an eviction and a torpord that dies",
        arguments: Language.allCases
    )
    func scenario(_ language: Language) throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let program = try language.program(in: folder)
        let words = program.exec.map { "\"\($0)\"" }.joined(separator: ", ")
        let variables = program.environment.map { "\($0) = \"\($1)\", " }.sorted().joined()
        try withDaemon(
            """
            [apps.web]
            exec = [\(words)]
            environment = { \(variables)CONFORMANCE = "@D" }
            settings_files = ["@D/web.conf"]
            identity_files = ["@D/account"]
            background_modes = ["remote-notification"]
            topics = { jobs = {}, left = {}, push = {} }
            launch = "on-demand"
            ready = "delegate"
            restart = "never"
            launch_deadline = "20s"
            transition_deadline = "20s"
            background_deadline = "20s"
            task_time = "4s"
            expiry_warning = "3s"
            """,
            files: ["web.conf": "1", "account": "somebody"]
        ) { daemon in
            var steps: [Step] = []
            try Self.conduct(daemon) { title, text, walk in
                let before = try daemon.events().last?.sequence ?? 0
                try walk()
                let events = try daemon.events().filter { $0.sequence > before }
                steps.append(Step(title: title, text: text, events: events))
            }
            #expect(daemon.records("web") == Self.told)
            try Self.keep(steps, told: daemon.records("web"), of: language)
        }
    }

    /// What the machine and its session have for it, in the background.
    static let toldOfMachine = [
        "willFinishLaunching background", "didFinishLaunching", "didEnterBackground",
        "didReceiveMemoryWarning warning", "significantTimeChange Asia/Tokyo", "didReceiveNotification locale",
        "protectedDataWillBecomeUnavailable", "protectedDataDidBecomeAvailable",
    ]

    @Test(
        "short memory, another time zone, another language, a locked session",
        .enabled(if: Users.isRoot && MockLogind.obstacle == nil, "needs root for a folder over /etc, and dbusmock"),
        arguments: Language.allCases
    )
    func machine(_ language: Language) throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let program = try language.program(in: folder)
        let words = program.exec.map { "\"\($0)\"" }.joined(separator: ", ")
        let variables = program.environment.map { "\($0) = \"\($1)\", " }.sorted().joined()
        let logind = try MockLogind { body in try Spawn.lock.withLock { try body() } }
        try logind.startLogind()
        try logind.run("add_session('c1', 1000)")
        let kernel = try KernelFiles()
        // Folders and links of its own in /etc: what changes there is this torpord's alone.
        let wrapper = [
            "/usr/bin/unshare", "-m", "/bin/sh", "-ec",
            "mkdir @D/etc; cp -a /etc/. @D/etc 2>/dev/null || :; rm -f @D/etc/localtime @D/etc/locale.conf; "
                + "ln -s /usr/share/zoneinfo/UTC @D/etc/localtime; mount --bind @D/etc /etc; unset TZ; exec \"$@\"",
            "sh",
        ]
        let daemon = try Daemon(
            """
            session = "c1"

            [apps.web]
            exec = [\(words)]
            environment = { \(variables)CONFORMANCE = "@D" }
            notifications = ["clock", "locale", "protected-data"]
            launch = "on-demand"
            ready = "delegate"
            restart = "never"
            evict = "never"
            launch_deadline = "20s"
            background_deadline = "20s"
            """,
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": logind.address, "TORPOR_KERNEL_FILES": kernel.root],
            wrapper: wrapper
        )
        try daemon.waitUntilItAnswers()
        try daemon.eventually("logind is followed") {
            try (daemon.call(.doctor)["checks"]?.arrayValue ?? []).map { try DoctorCheck(json: $0) }
                .contains { $0.name == "logind" && $0.ok }
        }
        try daemon.done(.start, "web") { $0.background = true }
        try daemon.waitForRecord("web", "didEnterBackground")
        kernel.setAvailable(0.07)
        try daemon.waitForRecord("web", "didReceiveMemoryWarning warning")
        kernel.setAvailable(0.5)
        let zone = daemon.directory + "/etc/localtime"
        try FileManager.default.createSymbolicLink(
            atPath: zone + ".new",
            withDestinationPath: "/usr/share/zoneinfo/Asia/Tokyo"
        )
        guard rename(zone + ".new", zone) == 0 else { throw Trouble("rename: \(errno)") }
        try daemon.waitForRecord("web", "significantTimeChange Asia/Tokyo")
        try File.replace(daemon.directory + "/etc/locale.conf", Array("LANG=tr_TR.UTF-8\n".utf8))
        try daemon.waitForRecord("web", "didReceiveNotification locale")
        try logind.hint("c1", true)
        try daemon.waitForRecord("web", "protectedDataWillBecomeUnavailable")
        try logind.hint("c1", false)
        try daemon.waitForRecord("web", "protectedDataDidBecomeAvailable")
        #expect(daemon.records("web") == Self.toldOfMachine)
        try daemon.done(.stop, "web")
        try daemon.stop()
    }

    /// A part of the scenario, and what happened in it.
    private struct Step {
        let title: String
        let text: String
        let events: [EventRecord]
    }

    /// Leads the app through it; each step waits until the one before is over.
    private static func conduct(
        _ daemon: Daemon,
        _ step: (_ title: String, _ text: String, _ walk: () throws -> Void) throws -> Void
    ) throws {
        try step("A launch into the foreground", "The app is ready when it has answered didFinishLaunching.") {
            try daemon.done(.start, "web")
        }
        try step("An interruption, and its end", "The app stays on the screen, but gets no user events.") {
            try daemon.done(.interrupt, "web")
            try daemon.done(.interrupt, "web") { $0.end = true }
        }
        try step(
            "Asked and told while it is in use",
            "The active app opens a URL, gets notice that its settings and its account changed, and gets what was posted to "
                + "it. It has no use for one topic and says so: the message could go to another app."
        ) {
            try daemon.done(.foreground, "web") { $0.url = "notes:1" }
            try daemon.waitForRecord("web", "openURL notes:1")
            try File.replace(daemon.directory + "/web.conf", Array("2".utf8))
            try daemon.waitForRecord("web", "settingsDidChange web.conf")
            try File.replace(daemon.directory + "/account", Array("another".utf8))
            try daemon.waitForRecord("web", "identityDidChange account")
            _ = try daemon.post("jobs", "seven")
            _ = try daemon.post("left", "over")
            _ = try daemon.post("push", "hello") { $0.remote = true }
            try daemon.waitForRecord("web", "didReceiveRemoteNotification push hello")
            try daemon.eventually("all of it is answered") { try daemon.mailbox().mail.isEmpty }
            #expect(try !daemon.events("web").contains { $0.text.contains("failed to handle") })
        }
        try step(
            "To the background with an upload that runs over, and back",
            "The app begins a background task that would never end. Shortly before the task's time is up, the app is "
                + "warned and ends the task. Then nothing keeps it awake, and a person brings it back."
        ) {
            try mark("long", daemon)
            try daemon.done(.background, "web")
            try daemon.waitForRecord("web", "taskExpiring upload")
            try daemon.waitForEvent("web", "ended the task upload")
            try unmark("long", daemon)
            try daemon.done(.foreground, "web")
        }
        try step(
            "Stopped, and continued",
            "The app was just told didEnterBackground, and is suspended; after it is resumed, it is told how long that was."
        ) {
            try daemon.done(.suspend, "web")
            try daemon.done(.resume, "web")
            try daemon.waitForRecord("web", "resumed after a gap")
        }
        try step(
            "An eviction, and a launch with what was saved",
            "The app was resumed, so it is told to save again before it is suspended. Then it is evicted without notice. The "
                + "next launch, into the background, restores its state."
        ) {
            try daemon.done(.suspend, "web")
            for pid in daemon.processes(of: "web") { kill(pid, SIGKILL) }
            try daemon.eventually("web is evicted") { try daemon.summary("web").lastExit?.reason == "evicted" }
            try daemon.done(.start, "web") { $0.background = true }
            try daemon.done(.foreground, "web")
        }
        try step(
            "A torpord that dies while a message is in flight",
            "The app has got a message and has not answered when torpord is killed. It connects to the next torpord, which "
                + "does not send the message again and accepts the answer."
        ) {
            try mark("hold", daemon)
            try daemon.done(.interrupt, "web") { $0.wait = false }
            try daemon.eventually("web is told of it") { daemon.records("web").last == "willResignActive" }
            try replaceTorpord(of: daemon)
            try unmark("hold", daemon)
            try daemon.waitFor("web", "inactive")
            try daemon.done(.interrupt, "web") { $0.end = true }
        }
        try step("The end", "The app answers willTerminate, then gets SIGTERM.") { try daemon.done(.stop, "web") }
    }

    /// Kills torpord, and waits until another one answers.
    static func replaceTorpord(of daemon: Daemon) throws {
        let before = try daemon.torpord()
        kill(before, SIGKILL)
        try daemon.eventually("torpord is there again") {
            guard let now = try? daemon.torpord(), now != before else { return false }
            return (try? daemon.list()) != nil
        }
    }

    /// For scripts/draw-lifecycles.
    private static func keep(_ steps: [Step], told: [String], of language: Language) throws {
        guard let folder = ProcessInfo.processInfo.environment["TORPOR_RECORDINGS"] else { return }
        let json: JSON = [
            "language": .string(language.rawValue), "told": .strings(told),
            "steps": .array(
                steps.map { step in
                    [
                        "title": .string(step.title), "text": .string(step.text),
                        "events": .array(step.events.map(\.json)),
                    ]
                }
            ),
        ]
        try File.write("\(folder)/\(language.rawValue).json", json.serialised())
    }

    private static func mark(_ name: String, _ daemon: Daemon) throws {
        try File.write(daemon.directory + "/" + name, "")
    }

    private static func unmark(_ name: String, _ daemon: Daemon) throws {
        try File.remove(daemon.directory + "/" + name)
    }
}
