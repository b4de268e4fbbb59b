// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Snapshots that apps give, and decline") struct GivenTests {
    private static let give = """
        def give(data): return d.attempt("SaveSnapshot", data=base64.b64encode(data).decode())
        """
    private static let taken = "snapshot = [\"/bin/echo\", \"taken\"]\n"

    private func with(_ keys: String = "", answers: String = "", _ body: (Daemon) throws -> Void) throws {
        try withDaemon(Delegates.head + keys, files: Delegates.files(answers, before: Self.give)) { daemon in
            try daemon.done(.start, "web")
            try body(daemon)
        }
    }

    @Test("An app gives one while it enters the background, and others there; not in the foreground")
    func gives() throws {
        try with(answers: #"didEnterBackground=lambda m: (give(b"at the door"), "done")[1]"#) { daemon in
            #expect(try daemon.ask(#"give(b"too early")"#).stringValue == "Failed")
            let refusal = try daemon.heard().last { $0.error == "Failed" }?.reply["message"]?.stringValue
            #expect(refusal == "only an app in the background has a snapshot: web is active")
            try daemon.done(.suspend, "web")
            #expect(try daemon.snapshotText() == "at the door")
            try daemon.done(.resume, "web")
            #expect(try daemon.ask(#"give(b"later")"#)["bytes"]?.intValue == 5)
            #expect(try daemon.snapshotText() == "later")
            let file = """
                open(os.environ["TORPOR_STATE_DIRECTORY"] + "/big", "w").write("7" * (3 << 20))
                record("big %s" % d.attempt("SaveSnapshot", file="big"))
                open(os.environ["TORPOR_STATE_DIRECTORY"] + "/big", "w").write("7" * ((4 << 20) + 1))
                record("too big %s" % d.attempt("SaveSnapshot", file="big"))
                """
            try daemon.ask(file)
            #expect(daemon.records("web").contains("big {'bytes': \(3 << 20)}"))
            #expect(daemon.records("web").contains("too big TooLarge"))
            for wrong in [#"give(bytes([1, 0, 2]))"#, #"give(b"")"#, "d.attempt('SaveSnapshot')"] {
                #expect(try daemon.ask(wrong).stringValue == "Failed", "\(wrong)")
            }
            #expect(try daemon.snapshot()?.data.count == 3 << 20)
        }
    }

    @Test("An app declines: none is taken, and the one that there was goes; the next time it may be another way")
    func declines() throws {
        let answers = #"""
            didEnterBackground=lambda m: {"result": "done", "declines": ["snapshot"] if os.path.exists(HERE + "/secret") else []}
            """#
        try with(Self.taken, answers: answers) { daemon in
            try daemon.done(.suspend, "web")
            try daemon.waitForSnapshot("taken\n")
            try File.write(daemon.directory + "/secret", "")
            try daemon.done(.foreground, "web")
            try daemon.done(.suspend, "web")
            try daemon.eventually("it is gone") { daemon.snapshotFiles().isEmpty }
            #expect(try daemon.snapshot() == nil)
            try daemon.done(.resume, "web")
            #expect(try daemon.ask("d.attempt('DiscardSnapshot')").description == "{}", "nothing to forget is no error")
            try File.remove(daemon.directory + "/secret")
            try daemon.done(.foreground, "web")
            try daemon.done(.suspend, "web")
            try daemon.waitForSnapshot("taken\n")
            try daemon.done(.resume, "web")
            try daemon.ask("d.call('DiscardSnapshot')")
            #expect(try daemon.snapshot() == nil)
        }
    }

    @Test("What was declined stays so after torpord is another one")
    func declinedForLong() throws {
        let answers = #"didEnterBackground={"result": "done", "declines": ["snapshot"]}"#
        let files = Delegates.files(answers, before: Self.give)
        try withRecovery(Delegates.head + Self.taken, files: files, loss: .killed) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.background, "web")
            // As if torpord had died before the one from before was gone.
            try daemon.eventually("there is none") { daemon.snapshotFiles().isEmpty }
            try File.makeDirectories(daemon.directory + "/s/snapshots/web")
            try File.write(daemon.directory + "/s/snapshots/web/1.text", "secret")
            try daemon.lose(.killed)
            try daemon.eventually("it goes") { daemon.snapshotFiles().isEmpty }
            try daemon.done(.suspend, "web")
            try daemon.done(.resume, "web")
            #expect(try daemon.snapshot() == nil && daemon.snapshotFiles().isEmpty)
        }
    }

    @Test("Again when the app says so by sd_notify, in the background alone")
    func notify() throws {
        let keys = "snapshot = [\"/bin/sh\", \"-c\", \"echo >>@D/times; wc -l <@D/times\"]\n"
        try with(keys) { daemon in
            try daemon.ask("notify('X_TORPOR_SNAPSHOT=1')")
            try daemon.done(.background, "web")
            try daemon.waitForSnapshot("1\n")
            try daemon.ask("notify('X_TORPOR_SNAPSHOT=1')")
            try daemon.waitForSnapshot("2\n")
        }
    }

    @Test("Again after a fetch that found something new, and not after one that did not")
    func fetches() throws {
        let kernel = try KernelFiles()
        let toml =
            Delegates.head + """
                event_time = "200ms"
                background_modes = ["fetch"]
                fetch_interval = "1s"
                snapshot = ["/bin/cat", "@D/shown"]

                """
        let answers = #"""
            performFetch=lambda m: {"result": "done", "fetch": open(HERE + "/found").read()}
            """#
        var files = Delegates.files(answers)
        (files["shown"], files["found"]) = ("before", "no-data")
        try withExtendedLifetime(kernel) {
            try withDaemon(toml, files: files, environment: ["TORPOR_KERNEL_FILES": kernel.root]) { daemon in
                try daemon.done(.start, "web")
                try daemon.done(.suspend, "web")
                try daemon.waitForSnapshot("before")
                try File.replace(daemon.directory + "/shown", Array("after".utf8))
                try daemon.waitForMessage("performFetch")
                try daemon.waitFor("web", "suspended")
                #expect(try daemon.snapshotText() == "before")
                try File.replace(daemon.directory + "/found", Array("new-data".utf8))
                try daemon.waitForSnapshot("after")
                try daemon.waitFor("web", "suspended")
            }
        }
    }
}
