// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("What is posted to an app")
struct PostTests {
    @Test("waits while it is suspended, and is told in order before anything else when it wakes")
    func waits() throws {
        try withDaemon(Posting.head, files: Delegates.files()) { daemon in
            try daemon.done(.start, "web", { $0.background = true })
            try daemon.done(.suspend, "web")
            let first = try daemon.post("news", .int(1))
            #expect(first.change == "added" && first.outcome == "waits")
            for number in 1...3 as ClosedRange<Int64> {
                try daemon.post("latest", .int(number))
                try daemon.post("count", .int(number)) { $0.key = "k" }
                let pad = try daemon.post("pad", ["before": .int(0), "after": .int(number % 2)]) { $0.coalesce = "net" }
                #expect(pad.change == (number == 2 ? "cancelled" : "added"))
                #expect((pad.id == nil) == (number == 2))
            }
            let waiting = try daemon.mailbox().mail
            #expect(waiting.map(\.topic) == ["news", "latest", "count", "pad"])
            #expect(waiting.map(\.count) == [1, 3, 3, 1] && waiting[2].key == "k")
            #expect(waiting.map(\.id) == waiting.map(\.id).sorted() && waiting[0].id == first.id)
            #expect(try daemon.heard().filter { $0.name == "didReceiveEvent" }.isEmpty)
            let suspended = try daemon.done(.suspend, "web")
            #expect(suspended.message == "web is suspended; 4 messages wait in its mailbox until it is woken")
            try daemon.done(.foreground, "web")
            let messages = try daemon.messages()
            let resumed = try #require(messages.firstIndex(of: "resumed"))
            #expect(
                messages[resumed...] == [
                    "resumed", "didReceiveEvent", "didReceiveEvent", "didReceiveEvent", "didReceiveEvent",
                    "willEnterForeground", "didBecomeActive",
                ]
            )
            let told = try daemon.heard().filter { $0.what == "message" && $0.name == "didReceiveEvent" }
            #expect(told.map { $0.parameters["topic"]?.stringValue } == ["news", "latest", "count", "pad"])
            #expect(told.map { $0.parameters["id"]?.intValue } == waiting.map(\.id))
            #expect(told[1].parameters["payload"] == .int(3) && told[1].parameters["count"] == .int(3))
            #expect(told[3].parameters["sender"]?.stringValue?.isEmpty == false)
            try daemon.eventually("nothing waits any more") { try daemon.mailbox().mail.isEmpty }
            // To one that runs, at once.
            #expect(try daemon.post("news", .int(9)).outcome == "told")
            try daemon.waitForMessage("didReceiveEvent", count: 5)
        }
    }

    @Test("what must be refreshed gathers while nobody sees the app, over its end and torpord's, and is told once")
    func refresh() throws {
        let toml = Delegates.head + "topics = { \"*\" = \"all\", \"feed/*\" = { refresh = true } }\nevict = \"kill\"\n"
        try withKilledDaemon(toml, files: Delegates.files()) { daemon in
            try daemon.done(.start, "web", { $0.background = true })
            try daemon.ask("d.call('SetNeedsRefresh', names=['inbox', 'to do'])")
            #expect(throws: (any Error).self) { try daemon.ask("d.call('SetNeedsRefresh', names=['a\\nb'])") }
            try daemon.done(.suspend, "web")
            for _ in 0..<3 { try daemon.post("feed/a", .int(1)) { $0.urgent = true } }
            #expect(try daemon.summary("web").state == "suspended")
            try daemon.done(.kill, "web")
            try daemon.replaceTorpord()
            #expect(try daemon.mailbox().mail.map(\.topic) == ["torpor.refresh"])
            try daemon.done(.start, "web")
            let told = try daemon.waitForMessage("refresh")
            #expect(told.parameters["payload"] == ["names": ["inbox", "to do", "feed/a"]])
            try daemon.done(.background, "web")
            try daemon.post("feed/b")
            try daemon.done(.foreground, "web")
            let again = try daemon.waitForMessage("refresh", count: 2)
            #expect(again.parameters["payload"] == ["names": ["feed/b"]])
            let messages = try daemon.messages()
            #expect(messages.suffix(3) == ["willEnterForeground", "refresh", "didBecomeActive"], "\(messages)")
            // An active app is told at once.
            try daemon.post("feed/c")
            try daemon.waitForMessage("refresh", count: 3)
            try daemon.eventually("nothing waits any more") { try daemon.mailbox().mail.isEmpty }
        }
    }

    @Test("is named in the report of an app that ends by it, with how it is dropped")
    func fatal() throws {
        let files = Delegates.files("didReceiveEvent=lambda m: os._exit(3)")
        try withDaemon(Posting.head, files: files) { daemon in
            try daemon.done(.start, "web")
            let id = try #require(try daemon.post("news").id)
            try daemon.eventually("it has ended") { try !daemon.reports("web").isEmpty }
            let text = try #require(try daemon.reports("web").first?.text)
            #expect(text.contains("it was handling message \(id) (news)"), "\(text)")
            #expect(text.contains("‘torpor mailbox web --drop \(id)’ drops it"), "\(text)")
        }
    }

    @Test("wakes it when it is urgent: suspended, evicted or never started; and it goes back to sleep")
    func urgent() throws {
        let toml = Posting.head + "event_time = \"200ms\"\nevict = \"kill\"\n"
        try withDaemon(toml, files: Delegates.files(before: "record(os.environ['TORPOR_LAUNCH_OPTIONS'])")) { daemon in
            // Never started.
            #expect(try daemon.post("news", ["n": .int(1)]) { $0.urgent = true }.outcome == "woken")
            try daemon.waitForMessage("didReceiveEvent")
            let options = try JSON.parse(try #require(daemon.records("web").first))
            #expect(options["reason"]?.stringValue == "event" && options["foreground"]?.boolValue == false)
            #expect(options["event"]?["source"]?.stringValue == "message")
            #expect(options["event"]?["name"]?.stringValue == "news" && options["payload"] == ["n": .int(1)])
            let launch = try daemon.heard().first { $0.name == "didFinishLaunching" }
            #expect(launch?.parameters["options"]?["payload"] == ["n": .int(1)])
            // Suspended, and again after the time of the event.
            try daemon.done(.suspend, "web")
            #expect(try daemon.post("news", .int(2)) { $0.urgent = true }.outcome == "woken")
            try daemon.waitForMessage("didReceiveEvent", count: 2)
            try daemon.waitFor("web", "suspended")
            #expect(try daemon.waitForEvent("web", "woken by news from").text.contains(" ms"))
            #expect(try daemon.told() == [["n": .int(1)], .int(2)])
        }
    }

    @Test("is refused where it takes nothing of the topic, cannot be read, or the mailbox is full")
    func refused() throws {
        let toml =
            Delegates.head + "topics = { news = { coalesce = \"merge\" }, \"s/*\" = \"all\" }\nmailbox_limit = 3\n"
        try withDaemon(toml, files: Delegates.files()) { daemon in
            let unknown = try #require(try daemon.refusal("other"))
            #expect(unknown.name == "NotSubscribed" && unknown.message.contains("[apps.web.topics]"))
            #expect(try daemon.refusal("news", .int(1))?.name == "InvalidParameter")
            #expect(try daemon.refusal("s/1", .int(1)) { $0.coalesce = "often" }?.name == "InvalidParameter")
            #expect(try daemon.refusal("news", [:], to: "wbe")?.name == "UnknownApp")
            let large = JSON.string(String(repeating: "x", count: 300 << 10))
            #expect(try daemon.refusal("s/1", large)?.name == "InvalidParameter")
            for number in 0..<3 as Range<Int64> { try daemon.post("s/\(number)", .int(number)) }
            let full = try #require(try daemon.refusal("s/4"))
            #expect(full.name == "MailboxFull" && full.message.contains("3 messages wait"))
            let second = try daemon.mailbox().mail[1].id
            let taken = try daemon.mailbox { $0.drop = [second] }
            #expect(taken.mail.map(\.topic) == ["s/1"] && taken.limit == 3)
            try daemon.post("news", ["a": .int(1)])
            #expect(try daemon.post("news", ["b": .int(2)]).change == "changed")
            #expect(try daemon.mailbox { $0.take = true }.mail.map(\.topic) == ["s/0", "s/2", "news"])
            #expect(try daemon.mailbox().mail.isEmpty && daemon.mailbox().bytes == 0)
        }
    }

    @Test("the same request, asked again after its connection was lost, is taken once")
    func repeated() throws {
        try withRecovery(Posting.head, files: Delegates.files()) { daemon in
            let token = RequestToken.random()
            #expect(try daemon.post("news", .int(1)) { $0.token = token }.change == "added")
            #expect(try daemon.post("news", .int(1)) { $0.token = token }.change == "repeated")
            try daemon.lose(.killed)
            #expect(try daemon.post("news", .int(1)) { $0.token = token }.change == "repeated")
            #expect(try daemon.mailbox().mail.count == 1)
            // A sender may number its requests: all bits of a token count.
            for number in 1...4 as ClosedRange<Int64> {
                let token = try #require(RequestToken(text: "\(number)"))
                #expect(try daemon.post("news", .int(number)) { $0.token = token }.change != "repeated")
                #expect(try daemon.post("news", .int(number)) { $0.token = token }.change == "repeated")
            }
        }
    }

    @Test("comes from other apps that it accepts, in their names")
    func fromApps() throws {
        let toml =
            Posting.head + "accepts_from = [\"friend\", \"tag:known\"]\n"
            + ["friend", "tagged", "stranger"].map { name in
                """

                [apps.\(name)]
                exec = ["/usr/bin/python3", "-S", "@D/app.py"]
                launch = "on-demand"
                ready = "delegate"
                \(name == "tagged" ? "tags = [\"known\"]" : "")

                """
            }.joined()
        try withDaemon(toml, files: Delegates.files()) { daemon in
            for name in ["friend", "tagged", "stranger"] { try daemon.done(.start, name) }
            let call = "d.attempt('Post', app='web', topic='news', payload={'a': 1}, sender='root', remote=True)"
            for name in ["friend", "tagged"] {
                #expect(try daemon.ask(call, app: name)["change"]?.stringValue == "added")
            }
            #expect(try daemon.ask(call, app: "stranger").stringValue == "NotPermitted")
            #expect(
                try daemon.ask("d.attempt('Post', app='wbe', topic='news')", app: "friend").stringValue == "UnknownApp"
            )
            let mail = try daemon.mailbox().mail
            #expect(mail.map(\.sender) == ["friend", "tagged"] && mail.allSatisfy { $0.name == "didReceiveEvent" })
        }
    }

    @Test("is told by a signal where there is no delegate; what is to be kept waits until it is taken")
    func signals() throws {
        let program = """
            from delegate import *
            on("SIGUSR1", lambda: record("event"))
            notify("READY=1")
            d = Delegate(attach=False)
            obey(d)
            """
        let toml = """
            [apps.web]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            launch = "on-demand"
            ready = "notify"
            signals = { didReceiveEvent = "SIGUSR1" }
            topics = { told = "all", kept = { keep = true } }

            """
        try withDaemon(toml, files: ["delegate.py": Delegates.library, "app.py": program]) { daemon in
            try daemon.post("kept", .int(1))
            try daemon.post("told", .int(2))
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "event")
            try daemon.eventually("only that waits which is kept") {
                try daemon.mailbox().mail.map(\.topic) == ["kept"]
            }
            #expect(try daemon.ask("[m['payload'] for m in d.call('Take', keep=True)['mail']]") == [.int(1)])
            let id = try daemon.mailbox().mail[0].id
            // It is not told a second time.
            #expect(daemon.records("web").count { $0 == "event" } == 1)
            #expect(try daemon.ask("d.call('Take', max=0, done=[\(id)])['mail']") == [])
            #expect(try daemon.mailbox().mail.isEmpty)
            // A topic that it asks for itself, which outlives it.
            #expect(try daemon.refusal("own")?.name == "NotSubscribed")
            try daemon.ask("d.call('Subscribe', topic='own*', coalesce='latest', keep=True)")
            #expect(try daemon.ask("d.attempt('Subscribe', topic='x', wake='soon')").stringValue == "InvalidParameter")
            try daemon.done(.suspend, "web")
            #expect(try daemon.status("web").wokenBy.contains("urgent posts to own*"))
            try daemon.done(.stop, "web")
            for number in 1...3 as ClosedRange<Int64> { try daemon.post("own/a", .int(number)) }
            try daemon.done(.start, "web")
            try daemon.eventually("it is up") { daemon.records("web").count { $0 == "up" } == 2 }
            #expect(try daemon.ask("[m['payload'] for m in d.call('Take')['mail']]") == [.int(3)])
            try daemon.ask("d.call('Subscribe', topic='own*', end=True)")
            #expect(try daemon.refusal("own")?.name == "NotSubscribed")
        }
    }

    @Test("an app that runs without a delegate or a signal gets it when it takes it, as the command says")
    func withoutDelegate() throws {
        try withDaemon(Apps.sleeper("lab", "topics = { \"*\" = \"all\" }")) { daemon in
            try daemon.waitFor("lab", "active")
            let posted = try Spawn.run([Built.path("torpor"), "post", "lab", "x", "--socket", daemon.socket])
            let text = "runs without a delegate and without a signal for it, and gets it when it takes it"
            #expect(posted.code == 0 && posted.output == "lab does not get it yet: it \(text)\n", "\(posted.output)")
        }
    }

    @Test("by the command line, whose output says what became of it")
    func commandLine() throws {
        try withDaemon(Posting.head, files: Delegates.files()) { daemon in
            func torpor(_ words: String...) throws -> (code: Int32, output: String) {
                try Spawn.run([Built.path("torpor")] + words + ["--socket", daemon.socket])
            }
            try File.write(daemon.directory + "/payload", "{\"n\": 7}")
            let posted = try torpor("post", "web", "news", "--payload", "@" + daemon.directory + "/payload")
            #expect(posted.code == 0 && posted.output == "web gets it when it runs\n")
            let table = try torpor("mailbox", "web").output
            #expect(table.contains("news") && table.contains("{\"n\":7}"))
            #expect(try torpor("post", "web", "news", "--payload", "hello").code == 2)
            #expect(try torpor("post", "web", "news", "--urgent", "--no-wake").code == 2)
            #expect(try torpor("mailbox", "web", "--drop", "5").code == 1)
            let json = try JSON.parse(try torpor("mailbox", "web", "--take", "--json").output)
            #expect(json["mail"]?.arrayValue?.first?["payload"] == ["n": .int(7)])
            #expect(try torpor("mailbox", "web").output == "")
            #expect(try torpor("post", "web", "news", "--urgent").output == "web is woken for it\n")
            try daemon.waitForMessage("didReceiveEvent")
        }
    }
}
