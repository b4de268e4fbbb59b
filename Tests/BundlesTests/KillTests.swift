// SPDX-License-Identifier: Apache-2.0

import BundleSeals
import Bundles
import DaemonHarness
import Foundation
import Linux
import Testing

@Suite("Bundles: installs that are killed", .enabled(if: File.isExecutable("/usr/bin/gcc"), "needs gcc"))
struct KillTests {
    @Test("A kill after any step leaves the old version or the new one", .timeLimit(.minutes(2)))
    func kills() throws {
        try Workshop.with { shop in
            let more = ["share/1": String(repeating: "x", count: 5000), "share/b/2": "y"]
            let files = [try shop.build("1.0", more: more), try shop.build("2.0", more: more)]
            try shop.install(files[0])
            let bundles = shop.folder + "/bundles/notes"
            func words(_ file: String) -> [String] { [Built.path("torpor"), "install", file, "--force"] + shop.places }
            let killer = try Killer(shop)
            // The system calls with which an install changes the disk.
            let steps = try killer.count(words(files[1]))
            try #require(steps > 20)
            #expect(shop.store.current("notes") == "2.0")
            var (killed, seen) = (0, Set<String>())
            // With TORPOR_TEST_ALL_KILLS as many as it takes for all rounds.
            let bound = ThisProcess.environment("TORPOR_TEST_ALL_KILLS") == nil ? 18 : 100
            let end = Clock.monotonic() + .seconds(bound)
            for round in 0..<200 {
                // On a loaded machine at least as many as the expectations below need.
                guard Clock.monotonic() < end || killed <= 5 || seen.count < 2 else {
                    print("kills: \(round) rounds in \(bound) s, the machine is loaded")
                    break
                }
                let before = try #require(shop.store.current("notes"))
                let file = before == "1.0" ? files[1] : files[0]
                // Each fifth install is not killed, and finds its version still there. The others unpack it again.
                let isWhole = round % 5 == 4
                if !isWhole { try File.removeTree(shop.store.place("notes", before == "1.0" ? "2.0" : "1.0")) }
                // The steps are far apart, so that few rounds on a loaded machine have all kinds of them.
                let step = isWhole ? steps + 1000 : 1 + round * 17 % steps
                if try killer.kills(words(file), at: step) { killed += 1 }
                let now = try #require(shop.store.current("notes"), "round \(round): no version is current")
                seen.insert(now)
                #expect(throws: Never.self, "step \(step)") { try shop.store.check("notes", now, keys: shop.trusted) }
            }
            #expect(killed > 5)
            #expect(seen == ["1.0", "2.0"])
            // The next install goes through, and removes what was left.
            try shop.install(files[shop.store.current("notes") == "1.0" ? 1 : 0], "--force")
            #expect(try File.list(bundles).filter { $0.hasPrefix(".") } == [".lock"])
        }
    }
}

extension KillTests {
    @Test("A kill after any step of an uninstall leaves the whole bundle or none", .timeLimit(.minutes(2)))
    func uninstalls() throws {
        try Workshop.with { shop in
            let file = try shop.build("1.0", more: ["share/b/2": "y"])
            let words = [Built.path("torpor"), "uninstall", "notes"] + shop.places
            let killer = try Killer(shop)
            try shop.install(file)
            let steps = try killer.count(words)
            try #require(steps > 5)
            #expect(try File.list(shop.folder + "/bundles").isEmpty)
            var left: Set<Bool> = []
            for step in 1...min(steps, 30) {
                try shop.install(file)
                #expect(try killer.kills(words, at: step), "step \(step)")
                left.insert(shop.store.current("notes") != nil)
                if shop.store.current("notes") != nil {
                    #expect(throws: Never.self, "step \(step)") {
                        try shop.store.check("notes", "1.0", keys: shop.trusted)
                    }
                } else {
                    #expect(!File.exists(shop.store.place("notes")), "step \(step)")
                }
            }
            #expect(left == [true, false])
            try shop.install(file)
            #expect(try File.list(shop.folder + "/bundles") == ["notes"])
        }
    }
}

/// Kills a program before its Nth system call that changes the disk.
private struct Killer {
    let shop: Workshop
    let library: String

    init(_ shop: Workshop) throws {
        self.shop = shop
        library = shop.folder + "/killer.so"
        let source = Sources.root + "/Tests/BundlesTests/killer.c"
        let (code, output) = try Spawn.run(["/usr/bin/gcc", "-shared", "-fPIC", "-o", library, source, "-ldl"])
        try #require(code == 0, "\(output)")
    }

    /// Runs the program to its end, and counts these calls.
    func count(_ words: [String]) throws -> Int {
        let file = shop.folder + "/count"
        let (code, output) = try run(words, ["KILL_COUNT": file])
        try #require(code == 0, "\(output)")
        return try #require(Int(try File.readString(file).split(separator: "\n").first ?? ""))
    }

    /// Runs the program; false if it came to its end before that call.
    func kills(_ words: [String], at step: Int) throws -> Bool { try run(words, ["KILL_AT": "\(step)"]).code != 0 }

    private func run(_ words: [String], _ variables: [String: String]) throws -> (code: Int32, output: String) {
        let environment = shop.environment.merging(variables) { $1 }.merging(["LD_PRELOAD": library]) { $1 }
        return try Spawn.run(words, environment: environment)
    }
}
