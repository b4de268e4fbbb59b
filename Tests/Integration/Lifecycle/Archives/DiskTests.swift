// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// Disks that hang or are full while apps save their state.
@Suite("State archives: the disk") struct ArchiveDiskTests {
    @Test("While the disk hangs nobody has a reply and nothing else waits; killed meanwhile, torpord leaves no half")
    func hanging() throws {
        let disk = try HangingDisk("/archives/")
        defer { disk.remove() }
        let keys = Delegates.head.replacingOccurrences(of: "apps.web", with: "apps.other")
        let files = Delegates.files(Delegates.restoring)
        try withDaemon(Delegates.head + keys, files: files, environment: disk.environment) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.ask(#"d.save(b"before")"#)
            try disk.hang()
            try daemon.tellLater(#"d.save(b"after")"#)
            try daemon.eventually("a write waits") { disk.waits }
            // The loop goes on, for this app and for others.
            #expect(try daemon.summary("web").state == "active")
            try daemon.done(.start, "other")
            try daemon.done(.background, "web")
            #expect(try String(contentsOfFile: daemon.archive(), encoding: .utf8) == "before")
            #expect(try daemon.heard().count { $0.method == "SaveState" } == 1)
            let torpord = try daemon.torpord()
            kill(torpord, SIGKILL)
            try daemon.eventually("another torpord answers") {
                (try? daemon.torpord()) != torpord && (try? daemon.summary("web")) != nil
            }
            #expect(try daemon.status("web").archive?.bytes == 6)
            try disk.answer()
            // The app has asked again.
            try daemon.eventually("it is saved") { try daemon.heard().count { $0.method == "SaveState" } == 2 }
            #expect(try String(contentsOfFile: daemon.archive(), encoding: .utf8) == "after")
            #expect(try File.list(daemon.directory + "/s/archives/web") == ["current"])
        }
    }

    @Test("A full disk is said in a sentence, once; the archive before it stays", .enabled(if: Namespaces.areAllowed))
    func full() throws {
        // The state directory of its own: a file system of 4 MiB, seen by torpord and its apps only.
        let mount = #"mkdir -p "$0" && mount -t tmpfs -o size=4m none "$0" && exec "$@""#
        let unshare = ["/usr/bin/unshare"] + (geteuid() == 0 ? [] : ["--user", "--map-root-user"]) + ["--mount"]
        let daemon = try Daemon(
            Delegates.head,
            files: Delegates.files(Delegates.restoring),
            wrapper: unshare + ["/bin/sh", "-c", mount, "@D/s"]
        )
        try daemon.waitUntilItAnswers()
        try daemon.done(.start, "web")
        #expect(try daemon.ask("d.save(bytes(400_000))")["bytes"]?.intValue == 400_000)
        let fill = """
            state = os.environ["TORPOR_STATE_DIRECTORY"]
            left = os.statvfs(state).f_bavail * os.statvfs(state).f_frsize
            open(state + "/filler", "wb").write(bytes(left - 100_000))
            """
        try daemon.ask(fill)
        for _ in 0..<2 { #expect(try daemon.ask("d.save(bytes(300_000))").stringValue == "Failed") }
        let refusal = try #require(try daemon.heard().last { $0.error == "Failed" })
        let sentence = refusal.reply["message"]?.stringValue ?? ""
        #expect(sentence.contains("the disk is full") && sentence.contains("earlier one is unchanged"), "\(sentence)")
        #expect(try daemon.events("web").count { $0.text.contains("could not save its state") } == 1)
        #expect(try daemon.ask("os.listdir(state + '/../../archives/web')").description == #"["current"]"#)
        #expect(try daemon.ask("os.path.getsize(state + '/../../archives/web/current')").intValue == 400_000)
        try daemon.ask("os.remove(state + '/filler')")
        #expect(try daemon.ask("d.save(bytes(300_000))")["bytes"]?.intValue == 300_000)
        try daemon.stop()
    }
}
