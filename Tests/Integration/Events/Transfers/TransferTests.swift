// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Transfers go on while the app sleeps", .serialized)
struct TransferTests {
    @Test("A download goes on while the app is suspended, and its end wakes it") func suspended() throws {
        try TransferScene.run { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            let id = try scene.get("slow", ", session='episodes'")
            try scene.waitForHalf(id)
            try daemon.done(.suspend, "web")
            try daemon.eventually("its progress is seen") {
                let info = try scene.infos.first
                return info?.state == "running" && info?.total == 1 << 20 && info?.bytes ?? 0 >= 1 << 19
            }
            #expect(try daemon.status("web").transfers == 1)
            #expect(try Truth.isStopped(daemon.status("web").summary.pid ?? 0), "the app sleeps")
            let helper = try #require(scene.helpers.first)
            #expect(!Truth.isStopped(helper), "what transfers does not")
            let (own, group) = (try ProcFS.cgroup(daemon.status("web").summary.pid ?? 0), try ProcFS.cgroup(helper))
            // Where apps have cgroups, it has one beside.
            if let own, own.hasSuffix("/web") { #expect(group == own + ":transfers") }
            let score = Int((try? File.readString("/proc/\(helper)/oom_score_adj").dropLast()) ?? "") ?? 0
            #expect(score >= 300, "it has the share of the background")
            try scene.go()
            try scene.expectDone("slow")
            #expect(try scene.told("handleEventsForBackgroundTransfer").map { $0["session"] } == ["episodes"])
            let names = try daemon.messages().filter { $0.contains("ransfer") }
            #expect(names == ["handleEventsForBackgroundTransfer", "transferDidFinish"])
            #expect(try scene.told().first?["transfer"]?.intValue == id)
            try daemon.eventually("nothing is kept of it") { try scene.infos.isEmpty && scene.parts.isEmpty }
            #expect(scene.requests.count == 1, "it was fetched once: \(scene.requests)")
            #expect(try daemon.list().first { $0.name == "web" }?.state != "active", "nobody asked for the foreground")
            try daemon.eventually("what transfers goes when it has nothing to do") { scene.helpers.isEmpty }
        }
    }

    @Test("Those of an app that is not owned wait, and continue when it is") func unowned() throws {
        try TransferScene.run(app: "owner = \"external\"") { scene in
            let daemon = scene.daemon
            try daemon.done(.own, "web")
            try daemon.done(.start, "web")
            let id = try scene.get("slow")
            try scene.waitForHalf(id)
            try daemon.done(.disown, "web")
            try daemon.eventually("nothing transfers") { scene.helpers.isEmpty }
            #expect(try scene.infos.map(\.state) == ["queued"])
            try scene.go()
            try daemon.done(.own, "web")
            try scene.expectDone("slow")
            #expect(scene.requests.count == 2 && scene.requests[1].contains("bytes="), "\(scene.requests)")
        }
    }

    @Test("The end of a session launches an app that has gone, once all of it is over") func relaunched() throws {
        try TransferScene.run { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            try scene.get("one")
            try scene.expectDone("one")
            #expect(try scene.told("handleEventsForBackgroundTransfer").isEmpty, "one that runs hears of ends alone")
            let slow = try scene.get("slow")
            try scene.waitForHalf(slow)
            try scene.get("gone", ", session='other', events=False")
            try daemon.tellLater("os._exit(0)")
            try daemon.waitFor("web", "not-running")
            let two = try #require(try scene.infos.first { $0.session == "default" })
            #expect(two.id == slow)
            try scene.go()
            try scene.expectDone("slow")
            let heard = try daemon.heard().filter { $0.what == "message" && $0.incarnation == 2 }.compactMap(\.name)
            let ours = heard.filter { $0.contains("ransfer") }
            #expect(ours.first == "handleEventsForBackgroundTransfer" && ours.contains("transferDidFinish"))
            try daemon.eventually("what failed is told too") {
                try scene.told().contains { $0["url"]?.stringValue?.hasSuffix("/gone") ?? false }
            }
            let failed = try scene.told().first { $0["url"]?.stringValue?.hasSuffix("/gone") ?? false }
            #expect(failed?["status"] == 404 && failed?["error"]?.stringValue?.contains("404") == true)
            let status = try daemon.status("web")
            #expect(status.summary.state != "active", "it is launched in the background")
        }
    }

    @Test("A force quit ends an app's transfers, a stop does not, and launches nobody") func ended() throws {
        try TransferScene.run { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            let first = try scene.get("slow1")
            try scene.waitForHalf(first)
            try daemon.done(.kill, "web")
            try daemon.eventually("all of it is gone") { try scene.infos.isEmpty && scene.parts.isEmpty }
            try daemon.done(.start, "web")
            let second = try scene.get("slow2")
            try scene.waitForHalf(second)
            try daemon.done(.stop, "web")
            try scene.go()
            try daemon.eventually("it is done") { try scene.infos.first?.state == "done" }
            #expect(try daemon.list().first { $0.name == "web" }?.state == "not-running")
            #expect(try scene.told().isEmpty)
            try daemon.done(.start, "web")
            try scene.expectDone("slow2")
            #expect(try scene.told().count == 1)
        }
    }

    @Test(
        "What transfers is of the app's user, and reaches what that may",
        .enabled(if: Users.isRoot, "only root has apps of other users")
    )
    func user() throws {
        try TransferScene.run(app: "user = \"nobody\"\ndata_folders = true") { scene in
            let daemon = scene.daemon
            // Where the app writes down what it hears.
            chmod(daemon.directory, 0o777)
            try daemon.done(.start, "web")
            let slow = try scene.get("slow")
            try scene.waitForHalf(slow)
            let helper = try #require(scene.helpers.first)
            let app = try #require(try daemon.status("web").summary.pid)
            let owners = try [helper, app].map { try ProcFS.statusField($0, "Uid") }
            #expect(owners[0] == owners[1] && owners[0]?.hasPrefix("0") == false, "\(owners)")
            let data = daemon.directory + "/s/data/web/documents"
            try daemon.ask(
                "d.call('StartTransfer', direction='download', url='\(scene.base)two', file='\(data)/a/two')"
            )
            try scene.go()
            try scene.expectDone("slow")
            try daemon.eventually("the other is there") { try scene.told().count == 2 }
            let told = try scene.told()
            #expect(told.allSatisfy { $0["error"]?.isNull == true }, "\(told)")
            #expect(try File.status(data + "/a/two").uid == File.status(data).uid)
            #expect(try File.status(daemon.directory + "/s/transfers/web").mode & 0o777 == 0o700)
        }
    }

    @Test(
        "A transfer without an end keeps no other user waiting",
        .enabled(if: Users.isRoot, "only root has apps of other users")
    )
    func share() throws {
        let other = Delegates.head.replacing("apps.web", with: "apps.other")
        try TransferScene.run(app: "user = \"nobody\"\n" + other, supervisor: "connections = 1") { scene in
            let daemon = scene.daemon
            // Where the app writes down what it hears.
            chmod(daemon.directory, 0o777)
            for name in ["web", "other"] { try daemon.done(.start, name) }
            try scene.waitForHalf(try scene.get("slow"))
            try scene.get("two")
            try daemon.ask(
                "d.call('StartTransfer', direction='download', url='\(scene.base)three', file='three')",
                app: "other"
            )
            try daemon.eventually("the other user's is there") {
                try daemon.heard("other").contains { $0.name == "transferDidFinish" }
            }
            #expect(!scene.requests.contains { $0.contains(" /two ") }, "the first user has its place")
        }
    }

    @Test("A file is uploaded, and one that has changed meanwhile is not taken for it") func uploads() throws {
        try TransferScene.run { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            try TransferServer.data.write(to: URL(fileURLWithPath: scene.state + "/out"))
            try daemon.ask(
                "d.call('StartTransfer', direction='upload', url='\(scene.base)in', file='\(scene.state)/out', "
                    + "headers=[{'name': 'X-Test', 'value': 'y'}])"
            )
            try daemon.eventually("it is told") { try scene.told().count == 1 }
            #expect(try scene.told()[0]["error"]?.isNull == true && scene.told()[0]["status"] == 201)
            #expect(try Data(contentsOf: URL(fileURLWithPath: daemon.directory + "/put.in")) == TransferServer.data)
            let (status, text) = try Spawn.run([Built.path("torpor"), "metrics", "--socket", daemon.socket])
            let lines = text.split(separator: "\n")
            for line in [
                #"torpor_app_transfers_ended_total{app="web",result="done"} 1"#,
                #"torpor_app_transfers{app="web",state="running"} 0"#,
                #"torpor_app_transferred_bytes_total{app="web",direction="upload"} 1048576"#,
            ] { #expect(status == 0 && lines.contains { $0 == line }, "\(line): \(text)") }
        }
    }

    @Test("What may have been sent already is sent once more only where that was asked for", arguments: [true, false])
    func doubt(retries: Bool) throws {
        try TransferScene.run(losing: true) { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            try File.write(scene.state + "/out", "paid")
            try daemon.ask(
                "d.call('StartTransfer', direction='upload', method='POST', url='\(scene.base)slow', file='out', "
                    + "retry=\(retries ? "True" : "False"))"
            )
            try daemon.eventually("it is sent") { scene.requests == ["POST /slow -"] }
            for helper in scene.helpers { kill(helper, SIGKILL) }
            if retries {
                try daemon.eventually("it is sent again") { scene.requests.count == 2 }
                try scene.go()
            }
            try daemon.eventually("it is told") { try scene.told().count == 1 }
            let end = try scene.told()[0]
            if retries {
                #expect(end["error"]?.isNull == true && end["status"] == 201, "\(end)")
            } else {
                #expect(end["error"]?.stringValue?.contains("the server may have the file") == true, "\(end)")
                #expect(scene.requests.count == 1, "\(scene.requests)")
            }
        }
    }

    @Test("A server that asks for a login has the app woken, and its answer used") func logins() throws {
        let app = """
            settings.key = { type = "secret" }
            transfers.credentials = { "nowhere.example" = { user = "me", secret = "key" } }
            """
        try TransferScene.run(app: app) { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            let id = try scene.get("login")
            let asked = try daemon.waitForMessage("transferNeedsLogin").parameters
            #expect(asked["transfer"]?.intValue == id && asked["realm"] == "the garden" && asked["scheme"] == "basic")
            #expect(try scene.infos.first?.cause == "login")
            try daemon.ask("d.call('AnswerLogin', id=\(id), user='me', password='rose')")
            _ = try daemon.waitForMessage("transferNeedsLogin", count: 2)
            let other = try scene.get("login2", ", session='two'")
            _ = try daemon.waitForMessage("transferNeedsLogin", count: 3)
            try daemon.ask("d.call('AnswerLogin', id=\(id), user='me', password='tulip')")
            try scene.expectDone("login")
            try daemon.ask("d.call('AnswerLogin', id=\(other), cancel=True)")
            try daemon.eventually("it has failed") {
                try scene.told().contains { $0["transfer"]?.intValue == other && $0["error"]?.stringValue != nil }
            }
            #expect(
                try !File.readString(daemon.directory + "/torpord.log").contains("tulip"),
                "nobody keeps what it said"
            )
        }
    }

    @Test("What is over is shown as what it was until it is answered for, or an operator forgets it") func over() throws
    {
        // One at a time: the second begins when the first is over.
        try TransferScene.run(supervisor: "per_host = 1") { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            let slow = try scene.get("slow")
            try scene.waitForHalf(slow)
            try scene.get("gone", ", session='other', events=False")
            // Both end while nobody is there who could be told.
            try daemon.done(.stop, "web")
            #expect(try daemon.torpor(["transfers", "--cancel", "\(slow)"]).code == 0)
            try daemon.eventually("both are over") {
                try Set(scene.infos.map(\.state)) == ["cancelled", "failed"]
            }
            let cancelled = try #require(try scene.infos.first { $0.id == slow })
            #expect(cancelled.reason == "cancelled" && cancelled.total == 1 << 20 && cancelled.attempts == 1)
            #expect(cancelled.bytes < 1 << 20)
            let gone = try #require(try scene.infos.first { $0.id != slow })
            #expect(gone.reason == "http-status" && gone.status == 404 && gone.attempts == 1, "\(gone)")
            #expect(try daemon.torpor(["transfers", "--cancel", "\(gone.id)"]).code == 0)
            #expect(try scene.infos.map(\.id) == [slow])
            try daemon.done(.start, "web")
            try daemon.eventually("the other is told") { try scene.told().map { $0["transfer"] } == [.int(slow)] }
            try daemon.eventually("it is answered for") { try scene.infos.isEmpty }
        }
    }

    @Test("A server that is busy is asked again, and what is cancelled is told") func triedAgain() throws {
        try TransferScene.run { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            try scene.get("busy")
            try scene.expectDone("busy")
            #expect(scene.requests == ["GET /busy -", "GET /busy -"])
            let id = try scene.get("slow")
            try scene.waitForHalf(id)
            let shown = try daemon.torpor(["transfers"])
            #expect(
                shown.code == 0 && shown.output.contains("running") && shown.output.contains("% of 1.0 MiB"),
                "\(shown)"
            )
            let unknown = try daemon.torpor(["transfers", "--cancel", "7"])
            #expect(unknown.code == 1 && unknown.output.contains("there is no transfer 7"), "\(unknown)")
            let cancelled = try daemon.torpor(["transfers", "--cancel", "\(id)"])
            #expect(cancelled.code == 0 && cancelled.output == "1 transfer cancelled\n", "\(cancelled)")
            try daemon.eventually("it is told") { try scene.told().count == 2 }
            #expect(try scene.told()[1]["error"]?.stringValue?.hasPrefix("it was cancelled by") == true)
            try daemon.eventually("nothing is left of it") { scene.parts.isEmpty }
            #expect(!File.exists(scene.state + "/slow"))
            // The app's own are not told.
            let own = try scene.get("slow3")
            try daemon.ask("d.call('CancelTransfer', id=\(own))")
            #expect(try scene.infos.isEmpty)
            #expect(try daemon.ask("d.attempt('CancelTransfer', id=\(own))") == "InvalidParameter")
            #expect(try scene.told().count == 2)
        }
    }

    @Test("What fails after there was nothing to do is tried again, and its process goes then") func onceMore() throws {
        try TransferScene.run { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            for name in ["one", "busy1", "two", "busy2"] {
                try scene.get(name)
                try scene.expectDone(name)
                try daemon.eventually("nothing is left to do") { try scene.infos.isEmpty }
            }
            try daemon.eventually("its process goes") { scene.helpers.isEmpty }
        }
    }

    @Test("What cannot be is refused with a sentence, and a request that is asked again is one") func refused() throws {
        try TransferScene.run { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            func refusal(_ words: String) throws -> String {
                _ = try daemon.ask("d.attempt('StartTransfer', \(words))")
                let last = try #require(try daemon.heard().last { $0.what == "refused" })
                return last.reply["message"]?.stringValue ?? last.reply["parameter"]?.stringValue ?? ""
            }
            let good = "direction='download', file='a', "
            #expect(try refusal(good + "url='ftp://h/'").contains("must begin with http:// or https://"))
            #expect(try refusal(good + "url='http://me@h/'").contains("must not name a user"))
            #expect(try refusal(good + "url='http://h/', headers=[{'name': 'Host', 'value': 'x'}]").contains("Host"))
            #expect(try refusal("direction='download', url='http://h/', file='../a'").contains("without . and .."))
            #expect(
                try refusal("direction='download', url='http://h/', file='/etc/passwd'").contains(
                    "must be below the app's"
                )
            )
            #expect(
                try refusal("direction='sideways', url='http://h/', file='a'").contains("must be download or upload")
            )
            #expect(try refusal(good + "url='http://h/', session='a b'").contains("must have 1 to 64 letters"))
            #expect(try scene.infos.isEmpty)
            let one = try scene.get("slow", ", token='ab'")
            #expect(try scene.get("slow", ", token='ab'") == one)
            #expect(try scene.infos.map(\.id) == [one])
        }
    }

    @Test("An app transfers from where it may") func limited() throws {
        let app = """
            transfers.allow = ["https://files.example"]
            """
        try TransferScene.run(app: app) { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            _ = try daemon.ask(
                "d.attempt('StartTransfer', direction='download', file='a', url='\(scene.base)a')"
            )
            let refused = try #require(try daemon.heard().last { $0.what == "refused" })
            #expect(refused.reply["message"]?.stringValue?.contains("may not transfer from or to 127.") == true)
            #expect(scene.requests.isEmpty)
        }
    }

    @Test("What is begun in the background is discretionary, and waits for the app's time of the day") func window()
        throws
    {
        // A window that is never now: it is over, and long before it comes again.
        let now = Calendar.current.dateComponents([.hour], from: Date()).hour ?? 0
        func hour(_ offset: Int) -> String { String(format: "%02d:00", (now + offset) % 24) }
        try TransferScene.run(app: "transfers.window = \"\(hour(10))-\(hour(12))\"") { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web", { $0.background = true })
            let id = try scene.get("one")
            let info = try #require(try scene.infos.first)
            #expect(info.id == id && info.isDiscretionary && info.state == "waiting")
            #expect(info.cause == "window" || info.cause == "load" || info.cause == "memory", "\(info)")
            #expect(scene.requests.isEmpty && scene.helpers.isEmpty)
            try daemon.done(.foreground, "web")
            try scene.get("two")
            try scene.expectDone("two")
            #expect(scene.requests == ["GET /two -"])
        }
    }

    @Test("A shell script has its files moved by the command line") func script() throws {
        try TransferScene.run { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            func run(_ words: String) throws -> (code: Int64, output: String) {
                let torpor = Built.path("torpor")
                let reply = try daemon.ask(
                    "(lambda p: [p.returncode, p.stdout.decode()])(__import__('subprocess').run('\(torpor) app transfer "
                        + "\(words)', shell=True, stdout=-1, stderr=-2, stdin=-3))"
                )
                return (reply.arrayValue?[0].intValue ?? -1, reply.arrayValue?[1].stringValue ?? "")
            }
            let got = try run("get --no-events \(scene.base)one")
            #expect(got.code == 0 && Int64(got.output.trimmingCharacters(in: .whitespacesAndNewlines)) != nil, "\(got)")
            try scene.expectDone("one")
            try TransferServer.data.write(to: URL(fileURLWithPath: scene.state + "/out"))
            #expect(try run("put out \(scene.base)up").code == 0)
            try daemon.eventually("it is told") { try scene.told().count == 2 }
            let listed = try run("list")
            #expect(listed == (0, "no transfers\n"), "\(listed)")
            let missing = try run("get \(scene.base)")
            #expect(missing.code == 2 && missing.output.contains("does not name a file"), "\(missing)")
            let unknown = try run("cancel 7")
            #expect(unknown.code == 2 && unknown.output.contains("not a transfer of web"), "\(unknown)")
        }
    }

    @Test("Whoever is killed at any instant, each file arrives whole, and is told") func kills() throws {
        let rounds = ProcessInfo.processInfo.environment["TORPOR_TRANSFER_KILLS"].flatMap { Int($0) } ?? 8
        var random = SystemRandomNumberGenerator()
        try TransferScene.run(supervisor: "per_host = 4", losing: true) { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            var names: [String] = []
            for round in 0..<rounds {
                for part in 0..<3 {
                    let name = "cut\(round).\(part)"
                    // What is asked again when torpord was lost before it replied is one.
                    let token = String(UInt64.random(in: 1...(1 << 62), using: &random) << 1, radix: 16)
                    try scene.get(name, ", session='s\(round)', token='\(token)'")
                    names.append(name)
                }
                usleep(UInt32.random(in: 0..<30_000, using: &random))
                switch Int.random(in: 0..<4, using: &random) {
                case 0: try daemon.lose(.killed)
                case 1: try daemon.lose(.keeper)
                case 2: try daemon.lose(.both)
                default: for helper in scene.helpers { kill(helper, SIGKILL) }
                }
            }
            for name in names { try scene.expectDone(name) }
            try daemon.eventually("nothing is kept") { try scene.infos.isEmpty && scene.parts.isEmpty }
            // What was told in the moment before torpord and the journal that its keeper holds are lost is told once more.
            #expect(Set(try scene.told().compactMap { $0["path"]?.stringValue }).count == names.count)
        }
    }
}
