// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// torpord, its keeper or both are killed while data folders are made ready: nothing changes but time.
@Suite("Data folders under kills") struct DataLossTests {
    private static let count = 60
    private static let content = String(repeating: "whole", count: 4000)

    /// `TORPOR_DATA_ROUNDS` says how many; `TORPOR_DATA_SEED` repeats the choices of a run.
    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }

    private struct Dice: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ (state >> 33)
        }
    }

    @Test("A first launch comes up with all of its data, tmp empty and what there was kept, whenever the kill comes")
    func kills() throws {
        let rounds = Int(Self.number("TORPOR_DATA_ROUNDS") ?? 15)
        let seed = Self.number("TORPOR_DATA_SEED") ?? UInt64.random(in: 1...999_999)
        print("data folders: TORPOR_DATA_SEED=\(seed), \(rounds) rounds")
        var dice = Dice(state: seed)
        try DataFolderTests.with("first_launch = \"@D/many\"\n") { daemon throws in
            try File.makeDirectories(daemon.directory + "/many/sub")
            for number in 0..<Self.count {
                let name = number % 2 == 0 ? "\(number)" : "sub/\(number)"
                try File.write(daemon.directory + "/many/" + name, Self.content)
            }
            for round in 0..<rounds {
                let loss = [Loss.killed, .keeper, .both].randomElement(using: &dice) ?? .killed
                let after = Int.random(in: 0...Self.count + 10, using: &dice)
                let before = daemon.records("web").count
                _ = try daemon.verb(.start, "web") { $0.wait = false }
                try daemon.eventually("\(after) files are copied, or it is up") {
                    let library = try? FileManager.default.subpathsOfDirectory(
                        atPath: DataFolderTests.path(daemon, "library")
                    )
                    return library?.count ?? 0 >= after || daemon.records("web").count >= before + 3
                }
                try daemon.lose(loss)
                // A launch under way at the loss of both may be given up: then the person asks again.
                _ = try daemon.verb(.start, "web")
                try daemon.done(.start, "web")
                try Self.check(daemon, "round \(round), \(loss) after \(after)")
                try daemon.done(.stop, "web")
                try daemon.done(.start, "web")
                #expect(DataFolderTests.last(daemon, "launch") == "False None", "round \(round), \(loss)")
                #expect(File.exists(DataFolderTests.path(daemon, "documents/kept")))
                try daemon.done(.stop, "web")
                try daemon.call(.purgeData(PurgeDataRequest(app: "web")))
                #expect(!File.exists(DataFolderTests.path(daemon)))
            }
        }
    }

    private static func check(_ daemon: Daemon, _ round: String) throws {
        let library = DataFolderTests.path(daemon, "library")
        let files = try FileManager.default.subpathsOfDirectory(atPath: library).filter { $0 != "sub" }
        #expect(files.count == count, "\(round): \(files)")
        for file in files {
            #expect(try File.readString(library + "/" + file) == content, "\(round): \(file) is not whole")
        }
        #expect(try File.kind(DataFolderTests.path(daemon, ".first-launch")) == nil, "\(round)")
        #expect(DataFolderTests.last(daemon, "tmp") == "[]", "\(round)")
        try File.write(DataFolderTests.path(daemon, "documents/kept"), "x")
        try File.write(DataFolderTests.path(daemon, "tmp/left"), "x")
    }
}

/// A filesystem of its own, that is soon full.
@Suite("Data folders on a full disk", .enabled(if: Users.isRoot, "only root can mount")) struct FullDiskTests {
    /// torpord and its apps see a small tmpfs in place of the state directory; `disk` there is for the test.
    private static func with(
        _ size: String,
        _ keys: String,
        supervisor: String = "",
        _ body: (Daemon) throws -> Void
    ) throws {
        let script = "mount -t tmpfs -o size=\(size),mode=755 none @D/s && exec \"$@\""
        let daemon = try Daemon(
            supervisor + DataFolderTests.head + keys,
            files: ["app.py": DataFolderTests.program],
            wrapper: ["/usr/bin/unshare", "-m", "/bin/sh", "-ec", "mkdir -p @D/s; " + script, "sh"]
        )
        try daemon.waitUntilItAnswers()
        try body(daemon)
        try daemon.stop()
    }

    /// The state directory as torpord sees it.
    private static func path(_ daemon: Daemon, _ part: String) throws -> String {
        "/proc/\(try daemon.livingTorpord())/root\(daemon.directory)/s/data/web/\(part)"
    }

    @Test("A copy for which there is no room fails the launch in words; with room it is done")
    func copy() throws {
        try Self.with("8m", "first_launch = \"@D/large\"\n") { daemon throws in
            try File.makeDirectories(daemon.directory + "/large")
            try File.write(daemon.directory + "/large/small", "fits")
            try File.write(daemon.directory + "/large/z", [UInt8](repeating: 1, count: 12 << 20))
            let result = try daemon.verb(.start, "web")
            #expect(!result.ok && result.message?.contains("No space left") == true, "\(result)")
            let z = try Self.path(daemon, "library/z")
            #expect(!File.exists(z))
            try File.write(daemon.directory + "/large/z", [UInt8](repeating: 1, count: 1 << 20))
            try daemon.done(.start, "web")
            #expect(try File.status(z).size == 1 << 20)
            #expect(DataFolderTests.last(daemon, "launch") == "True None")
        }
    }

    @Test("Caches of an app that does not run go, the oldest first, and nothing else does")
    func eviction() throws {
        try Self.with("16m", "", supervisor: "min_free = \"50%\"\n") { daemon throws in
            try daemon.done(.start, "web")
            try daemon.tell(
                "1",
                """
                import os, time
                for place, files in (("TORPOR_CACHES", "abcde"), ("TORPOR_LIBRARY", "l")):
                    for age, one in enumerate(files):
                        file = os.environ[place] + "/" + one
                        open(file, "wb").write(bytes(2 << 20))
                        os.utime(file, (1000000000 + age * 86400,) * 2)
                """
            )
            // 12 of 16 MiB are taken; while it runs nothing goes.
            try daemon.done(.stop, "web")
            try daemon.waitForEvent("web", "of its caches")
            try daemon.eventually("there is room") { try !File.exists(Self.path(daemon, "caches/b")) }
            let left = try File.list(Self.path(daemon, "caches"))
            #expect(!left.contains("a") && !left.contains("b") && left.contains("e"), "\(left)")
            #expect(try File.status(Self.path(daemon, "library/l")).size == 2 << 20)
        }
    }
}
