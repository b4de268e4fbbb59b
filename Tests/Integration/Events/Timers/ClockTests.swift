// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// The time zone is that of a torpord that has a folder /etc of its own; the clock is the machine's, which nobody sets
/// for a test: that is with the machine in emulation.
@Suite("Apps hear of another time zone", .enabled(if: Users.isRoot, "only root can mount a folder over /etc"))
struct ClockTests {
    /// A copy of /etc, in which the zone can be changed.
    private static let wrapper = [
        "/usr/bin/unshare", "-m", "/bin/sh", "-ec",
        "mkdir @D/etc; cp -a /etc/. @D/etc 2>/dev/null || :; rm -f @D/etc/localtime; "
            + "ln -s /usr/share/zoneinfo/UTC @D/etc/localtime; mount --bind @D/etc /etc; unset TZ; exec \"$@\"", "sh",
    ]

    /// As timedatectl does it.
    private func setZone(_ name: String, _ daemon: Daemon) throws {
        let link = daemon.directory + "/etc/localtime"
        try FileManager.default.createSymbolicLink(
            atPath: link + ".new",
            withDestinationPath: "/usr/share/zoneinfo/" + name
        )
        guard rename(link + ".new", link) == 0 else { throw Trouble("rename: \(errno)") }
    }

    private func withZones(_ toml: String, files: [String: String] = [:], _ body: (Daemon) throws -> Void) throws {
        try #require(File.exists("/usr/share/zoneinfo/Pacific/Kiritimati"), "the package tzdata is needed")
        let daemon = try Daemon(toml, files: files, wrapper: Self.wrapper)
        try daemon.waitUntilItAnswers()
        try body(daemon)
        try daemon.stop()
    }

    @Test("Fifty sleeping apps are told once each when they wake, and not before")
    func fifty() throws {
        let names = (1...50).map { "a\($0)" }
        let toml = names.map { name in
            """
            [apps.\(name)]
            exec = ["/bin/sh", "-c", "trap 'echo told >> @D/rec.\(name)' USR1; echo up >> @D/rec.\(name); while :; do sleep 1000 & wait $!; done"]
            launch = "background"
            signals = { significantTimeChange = "SIGUSR1" }

            """
        }.joined()
        try withZones(toml) { daemon in
            try daemon.eventually("all are up", within: .seconds(60)) {
                names.allSatisfy { daemon.records($0) == ["up"] }
            }
            _ = try daemon.verbs(.suspend, names)
            for zone in ["Europe/Berlin", "Asia/Tokyo", "Pacific/Kiritimati"] {
                try setZone(zone, daemon)
                try daemon.eventually("torpord knows of \(zone)") {
                    try daemon.events().contains { $0.text == "the time zone is \(zone) now" }
                }
            }
            #expect(names.allSatisfy { daemon.records($0) == ["up"] })
            #expect(try daemon.list().allSatisfy { $0.state == "suspended" })
            _ = try daemon.verbs(.resume, names)
            try daemon.eventually("all are told") { names.allSatisfy { daemon.records($0).count > 1 } }
            // What comes after it is behind whatever else would be told.
            _ = try daemon.verbs(.foreground, names)
            #expect(names.allSatisfy { daemon.records($0) == ["up", "told"] })
        }
    }

    @Test("Also where the file is no link, and is written into")
    func writtenInPlace() throws {
        try withZones(Delegates.head, files: Delegates.files()) { daemon in
            try daemon.done(.start, "web")
            let file = daemon.directory + "/etc/localtime"
            func zone(_ name: String) throws -> Data {
                try Data(contentsOf: URL(fileURLWithPath: "/usr/share/zoneinfo/" + name))
            }
            // In the place of the link there is a file.
            try zone("Asia/Tokyo").write(to: URL(fileURLWithPath: file), options: .atomic)
            try daemon.eventually("torpord knows of it") {
                try daemon.events().contains { $0.text == "the time zone is JST now" }
            }
            let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
            try handle.write(contentsOf: try zone("Asia/Kolkata"))
            try handle.truncate(atOffset: UInt64(try zone("Asia/Kolkata").count))
            try handle.close()
            try daemon.eventually("torpord knows of it") {
                try daemon.events().contains { $0.text == "the time zone is IST now" }
            }
            try daemon.eventually("the app is told") {
                try daemon.heard().filter { $0.name == "significantTimeChange" }.count == 2
            }
        }
    }

    @Test("A delegate is told what has changed, of several changes the last")
    func delegate() throws {
        try withZones(Delegates.head, files: Delegates.files()) { daemon in
            try daemon.done(.start, "web")
            try setZone("Asia/Tokyo", daemon)
            try daemon.eventually("it is told at once") {
                try daemon.heard().contains { $0.name == "significantTimeChange" }
            }
            try daemon.done(.suspend, "web")
            for zone in ["Europe/Berlin", "UTC"] {
                try setZone(zone, daemon)
                try daemon.eventually("torpord knows of \(zone)") {
                    try daemon.events().contains { $0.text == "the time zone is \(zone) now" }
                }
            }
            try daemon.done(.resume, "web")
            try daemon.eventually("it is told when it wakes") {
                try daemon.heard().filter { $0.name == "significantTimeChange" }.count == 2
            }
            let heard = try daemon.heard().filter { $0.name == "significantTimeChange" }
            #expect(heard[0].parameters["payload"]?["time_zone"]?.stringValue == "Asia/Tokyo")
            #expect(heard[0].parameters["payload"]?["utc_offset_s"]?.intValue == 32_400)
            #expect(heard[1].parameters["payload"]?["time_zone"]?.stringValue == "UTC")
            #expect(heard[1].parameters["count"]?.intValue == 2)
            #expect(heard[1].parameters["topic"]?.stringValue == "clock")
        }
    }

    @Test("A timer of the calendar goes by the new zone")
    func timers() throws {
        let toml = TimerTests.app("web", #"timers = [{ name = "noon", calendar = "*-*-* 12:00:00" }]"#)
        try withZones(toml, files: TimerTests.files) { daemon in
            func next() throws -> Int64? { try TimerTests.timers(daemon).first?.next }
            try daemon.eventually("noon is that of UTC") { try next().map { $0 % 86_400_000_000 } == 43_200_000_000 }
            try setZone("Asia/Tokyo", daemon)
            try daemon.eventually("noon is that of Tokyo") {
                try next().map { $0 % 86_400_000_000 } == 10_800_000_000
            }
        }
    }
}
