// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Linux
import Mailbox
import Testing

@testable import EventSources

@Suite("Files that wake apps", .serialized) struct PathSourceTests {
    /// A second app hears of each write to the file `bell`: what happened before it is known then.
    private static func web(_ folder: TestFolder, _ triggers: String..., more: String = "") -> String {
        """
        [apps.web]
        exec = ["/bin/true"]
        launch = "on-demand"
        signals = { didReceiveEvent = "SIGUSR1" }
        paths = [\(triggers.map { "{ \($0) }" }.joined(separator: ", "))]
        \(more)
        [apps.bell]
        exec = ["/bin/true"]
        launch = "on-demand"
        signals = { didReceiveEvent = "SIGUSR1" }
        paths = [{ name = "bell", modified = "\(folder("bell"))", wake = "none" }]
        """
    }

    /// Whatever has happened to files was heard.
    private func hear(_ events: FakeEvents, _ folder: TestFolder) throws {
        for _ in 0..<2 {
            let before = events.topics("bell").count
            try events.wait("the bell is heard", passing: .seconds(1)) {
                if events.topics("bell").count == before { try File.append(folder("bell"), [1]) }
                return events.topics("bell").count > before
            }
        }
    }

    private func tellings(_ events: FakeEvents) -> [String] {
        (events.host.drafts[events.shell.app("web").id] ?? []).map { $0.key ?? "" }
    }

    @Test("one that is there when the supervisor starts launches the app, which is told of it") func exists() throws {
        let folder = try TestFolder()
        try File.write(folder("f"), "x")
        let events = try FakeEvents(
            real: Self.web(folder, "name = \"it\", exists = \"\(folder("f"))\""),
            isStarted: false
        )
        var turns = 0
        try events.wait("the loop has turned", passing: .seconds(1)) {
            turns += 1
            return turns > 20
        }
        #expect(events.shell.state("web") == .notRunning && events.topics("web") == [], "it is not begun yet")
        try events.begin()
        try events.wait(for: .background, of: "web")
        #expect(events.woken("web") == ["the existence of \(folder("f"))"])
        #expect(events.topics("web") == ["path:it"] && tellings(events) == [folder("f")])
    }

    @Test("what lasts wakes the app again when it has ended, and not while it sleeps, having seen it") func lasts()
        throws
    {
        let folder = try TestFolder()
        try File.makeDirectories(folder("d"))
        let events = try FakeEvents(real: Self.web(folder, "not_empty = \"\(folder("d"))\""))
        try hear(events, folder)
        #expect(events.shell.state("web") == .notRunning)
        try File.write(folder("d/1"), "x")
        try events.wait("it was woken", passing: .seconds(1)) { events.woken("web").count == 1 }
        try events.fallAsleep("web")
        try hear(events, folder)
        #expect(events.shell.state("web") == .suspended)
        try File.write(folder("d/2"), "x")
        try events.wait("more of it wakes", passing: .seconds(1)) { events.woken("web").count == 2 }
        try events.fallAsleep("web")
        try events.evict("web")
        try events.wait("it is launched again", passing: .seconds(1)) { events.woken("web").count == 3 }
        try File.remove(folder("d/1"))
        try File.remove(folder("d/2"))
        try hear(events, folder)
        try events.fallAsleep("web")
        try events.evict("web")
        try hear(events, folder)
        #expect(events.shell.state("web") == .notRunning)
    }

    @Test("what was held back and is over by then wakes nobody", arguments: [true, false])
    func over(isRemoved: Bool) throws {
        let folder = try TestFolder()
        let more = "wake_storm = { limit = 1, window = \"10h\", hold = \"60s\" }"
        let events = try FakeEvents(real: Self.web(folder, "exists = \"\(folder("f"))\"", more: more))
        try hear(events, folder)
        try File.write(folder("f"), "x")
        try events.wait(for: .background, of: "web")
        try events.fallAsleep("web")
        try events.evict("web")
        try events.wait("it is held back", passing: .milliseconds(10)) {
            events.shell.told(of: "web").contains { $0.contains("wake_storm") }
        }
        if isRemoved { try File.remove(folder("f")) }
        try hear(events, folder)
        try events.pass(.seconds(61))
        if isRemoved {
            try hear(events, folder)
            #expect(events.shell.state("web") == .notRunning)
        } else {
            try events.wait(for: .background, of: "web")
        }
    }

    @Test("what happens wakes it each time, and never what was so before", arguments: ["changed", "modified"])
    func happens(condition: String) throws {
        let folder = try TestFolder()
        try File.write(folder("f"), "x")
        let events = try FakeEvents(real: Self.web(folder, "\(condition) = \"\(folder("f"))\""))
        try hear(events, folder)
        #expect(events.shell.state("web") == .notRunning && events.topics("web") == [])
        try events.shell.start("web")
        for count in 1...2 {
            try events.fallAsleep("web")
            try File.write(folder("f"), "other \(count)")
            try events.wait("it was woken", passing: .seconds(1)) { events.woken("web").count == count }
            try hear(events, folder)
        }
        #expect(events.woken("web").allSatisfy { $0 == "a change of \(folder("f"))" })
        let writer = try File.open(folder("f"), [.write])
        try events.fallAsleep("web")
        _ = try Descriptor.write(writer.raw, [1])
        try hear(events, folder)
        #expect((events.shell.state("web") == .background) == (condition == "modified"), "it is not closed yet")
    }

    @Test("what happens while a job runs launches it once more, with rerun", arguments: [true, false])
    func rerun(reruns: Bool) throws {
        let folder = try TestFolder()
        let toml = Self.web(folder, "changed = \"\(folder("f"))\", rerun = \(reruns)")
        let hears = "signals = { didReceiveEvent = \"SIGUSR1\" }\n"
        let events = try FakeEvents(real: toml.replacing(hears + "paths = [{ changed", with: "paths = [{ changed"))
        try hear(events, folder)
        try File.write(folder("f"), "1")
        try events.wait("it is launched", passing: .seconds(1)) { events.woken("web").count == 1 }
        for text in ["2", "3"] { try File.write(folder("f"), text) }
        try hear(events, folder)
        #expect(events.woken("web").count == 1)
        try events.evict("web")
        try hear(events, folder)
        #expect(events.woken("web").count == (reruns ? 2 : 1))
        #expect((events.shell.state("web") == .notRunning) == !reruns)
        guard reruns else { return }
        try events.evict("web")
        try hear(events, folder)
        #expect(events.woken("web").count == 2, "one run more is enough")
    }

    @Test("what happened while a job ran launches it once more after torpord was replaced", arguments: [true, false])
    func rerunAfterTakeover(runs: Bool) throws {
        let folder = try TestFolder()
        let hears = "signals = { didReceiveEvent = \"SIGUSR1\" }\n"
        let toml = Self.web(folder, "changed = \"\(folder("f"))\", rerun = true")
            .replacing(hears + "paths = [{ changed", with: "paths = [{ changed")
        let events = try FakeEvents(real: toml)
        // All of them write to the file that the keeper holds.
        func replaced() throws -> FakeEvents {
            let memory = try Descriptor.duplicate(try #require(events.host.held["paths"]?.first))
            return try FakeEvents(real: toml, left: [(name: "paths", descriptors: [memory])]) { shell, _ in
                if runs { try shell.request(.start(background: true), "web") }
            }
        }
        try hear(events, folder)
        try File.write(folder("f"), "1")
        try events.wait("it is launched", passing: .seconds(1)) { events.woken("web").count == 1 }
        try File.write(folder("f"), "2")
        try hear(events, folder)
        let next = try replaced()
        try hear(next, folder)
        if runs {
            #expect(next.woken("web").isEmpty)
            // The one after it knows it too.
            let last = try replaced()
            try hear(last, folder)
            try last.evict("web")
            try hear(last, folder)
            #expect(last.woken("web") == ["a change of \(folder("f"))"])
        } else {
            #expect(next.woken("web") == ["a change of \(folder("f"))"])
            try next.evict("web")
            let last = try replaced()
            try hear(last, folder)
            #expect(last.woken("web").isEmpty, "one run more is enough")
        }
    }

    @Test("a condition that waits in a wake storm is not forgotten when torpord is replaced", arguments: [true, false])
    func heldBackAfterTakeover(holds: Bool) throws {
        let folder = try TestFolder()
        let storm = "wake_storm = { limit = 1, window = \"1h\", hold = \"1h\" }"
        let toml = Self.web(folder, "exists = \"\(folder("f"))\"", more: storm)
        let events = try FakeEvents(real: toml)
        try hear(events, folder)
        try File.write(folder("f"), "1")
        try events.wait("it is launched", passing: .seconds(1)) { events.woken("web").count == 1 }
        try events.evict("web")
        try hear(events, folder)
        #expect(events.woken("web").count == 1)
        if !holds { try File.remove(folder("f")) }
        let memory = try Descriptor.duplicate(try #require(events.host.held["paths"]?.first))
        let next = try FakeEvents(real: toml, left: [(name: "paths", descriptors: [memory])])
        try hear(next, folder)
        #expect(next.woken("web").count == (holds ? 1 : 0))
    }

    @Test("an app that ended while torpord was replaced is launched if a condition holds", arguments: [true, false])
    func endedMeanwhile(isStopped: Bool) throws {
        let folder = try TestFolder()
        let toml = Self.web(folder, "exists = \"\(folder("f"))\"")
        let events = try FakeEvents(real: toml)
        try hear(events, folder)
        try File.write(folder("f"), "1")
        try events.wait("it is launched", passing: .seconds(1)) { events.woken("web").count == 1 }
        let memory = try Descriptor.duplicate(try #require(events.host.held["paths"]?.first))
        // Nobody has told that it ended.
        let next = try FakeEvents(real: toml, left: [(name: "paths", descriptors: [memory])]) { shell, _ in
            guard isStopped else { return }
            try shell.request(.start(background: true), "web")
            try shell.request(.stop(.stopped), "web")
        }
        try hear(next, folder)
        #expect(next.woken("web").count == (isStopped ? 0 : 1))
    }

    @Test("names with odd bytes are told as they are, each once") func oddNames() throws {
        let folder = try TestFolder()
        try File.makeDirectories(folder("d"))
        let events = try FakeEvents(
            real: Self.web(folder, "changed = \"\(folder("d"))\"", more: "event_time = \"10h\"")
        )
        try hear(events, folder)
        let names = ["ä ö", "a\nb", "=\"'", "*?[x]", "\u{1b}[31m", "-"]
        for name in names { try File.write(folder("d/" + name), "x") }
        try hear(events, folder)
        #expect(Set(tellings(events)) == Set(names.map { folder("d/" + $0) }))
    }

    @Test("one that was woken too often is woken when it may be, and was told before") func storm() throws {
        let folder = try TestFolder()
        let more = "wake_storm = { limit = 1, window = \"10h\", hold = \"1h\" }"
        let events = try FakeEvents(real: Self.web(folder, "changed = \"\(folder("f"))\"", more: more))
        try hear(events, folder)
        try File.write(folder("f"), "1")
        try events.wait("it was woken", passing: .seconds(1)) { events.woken("web").count == 1 }
        try events.fallAsleep("web")
        try File.write(folder("f"), "22")
        try events.wait("it is told", passing: .seconds(1)) { tellings(events).count >= 2 }
        let told = tellings(events).count
        try events.pass(.seconds(3_500))
        #expect(events.shell.state("web") == .suspended)
        try events.pass(.seconds(100))
        #expect(events.woken("web").count == 2 && tellings(events).count == told)
    }

    @Test("where its mailbox is full the app is woken all the same") func fullMailbox() throws {
        let folder = try TestFolder()
        let events = try FakeEvents(real: Self.web(folder, "changed = \"\(folder("f"))\""))
        try hear(events, folder)
        events.host.full = [events.shell.app("web").id]
        try File.write(folder("f"), "1")
        try events.wait("it was woken", passing: .seconds(1)) { events.woken("web").count == 1 }
        #expect(events.topics("web") == [])
    }

    @Test("nothing is heard for an app that has left, and another configuration of the same files is no news")
    func left() throws {
        let folder = try TestFolder()
        try File.write(folder("f"), "x")
        let toml = Self.web(folder, "exists = \"\(folder("f"))\"", "changed = \"\(folder("g"))\"")
        let events = try FakeEvents(real: toml)
        try events.wait("it was woken", passing: .seconds(1)) { events.woken("web").count == 1 }
        try events.configure(toml)
        try hear(events, folder)
        #expect(events.topics("web").count == 1)
        let web = try events.remove("web")
        try File.write(folder("g"), "x")
        try hear(events, folder)
        #expect(events.host.drafts[web.id]?.count == 1)
    }

    @Test(
        "what changed between two torpords is news to the next one, and what did not is none",
        arguments: [true, false]
    )
    func nextTorpord(changes: Bool) throws {
        let folder = try TestFolder()
        for name in ["f", "e"] { try File.write(folder(name), "x") }
        let toml = Self.web(folder, "changed = \"\(folder("f"))\"", "exists = \"\(folder("e"))\"")
        let first = try FakeEvents(real: toml)
        try first.wait("what is there was told", passing: .seconds(1)) { first.topics("web").count == 1 }
        try hear(first, folder)
        let memory = try #require(first.host.held["paths"]?.first)
        let left = [("paths", [try Descriptor.duplicate(memory)])]
        if changes { try File.write(folder("f"), "longer") }
        let events = try FakeEvents(real: toml, left: left)
        try hear(events, folder)
        #expect(tellings(events) == (changes ? [folder("f")] : []))
    }

    // MARK: Settings

    private static func settings(_ folder: TestFolder) -> String {
        let more = """
            settings_files = ["\(folder("s"))"]
            identity_files = ["\(folder("i"))"]
            """
        let toml = web(folder, "changed = \"\(folder("f"))\"", more: more)
        return toml.replacing(
            "{ didReceiveEvent = \"SIGUSR1\" }",
            with: "{ didReceiveEvent = \"SIGUSR1\", settingsDidChange = \"SIGHUP\", identityDidChange = \"SIGUSR2\" }",
            maxReplacements: 1
        )
    }

    @Test("a change of settings is told once after its last step to an app that lives, and wakes nobody")
    func settings() throws {
        let folder = try TestFolder()
        for name in ["s", "i"] { try File.write(folder(name), "x") }
        let events = try FakeEvents(real: Self.settings(folder))
        try hear(events, folder)
        try File.write(folder("s"), "of one that is not running")
        try hear(events, folder)
        try events.pass(.seconds(1))
        #expect(events.topics("web") == [])
        try events.fallAsleep("web")
        for text in ["one", "other", "third one"] { try File.write(folder("s"), text) }
        try events.wait("it is told", passing: .milliseconds(20)) { !events.topics("web").isEmpty }
        try hear(events, folder)
        try events.pass(.seconds(3))
        #expect(events.topics("web") == ["settings"])
        try File.replace(folder("i"), Array("another".utf8))
        try hear(events, folder)
        try events.pass(.seconds(3))
        #expect(events.topics("web") == ["settings", "identity"])
        #expect(events.shell.state("web") == .suspended)
        try File.write(folder("s"), "third one")
        try hear(events, folder)
        try events.pass(.seconds(3))
        #expect(events.topics("web").filter { $0 == "settings" }.count <= 2, "written once more at most")
    }
}
