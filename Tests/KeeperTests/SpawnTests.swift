// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Processes
import Testing

/// Each as the keeper does it here, and as it does it where the kernel is older.
@Suite("How the keeper makes a child", .serialized) struct SpawnTests {
    private static let ways: [[String: String]] = [
        [:], ["TORPOR_KEEPER_TEST_NO_UNSHARE": "1"], ["TORPOR_KEEPER_TEST_FORK": "1"],
    ]

    private func hold(_ bench: Bench, _ count: Int) throws {
        let file = try File.open("/dev/zero")
        for index in 0..<(count / 100) {
            bench.keeper.hold("many/\(index)", Array(repeating: file.raw, count: 100))
        }
        #expect(try bench.keeper.held().count == count / 100)
    }

    @Test("with more descriptors held than a child may see, it has its own and no others", arguments: ways)
    func many(environment: [String: String]) throws {
        try withBench(environment: environment) { bench in
            try hold(bench, 2_000)
            let passed = try File.open("/dev/full")
            for round in 0..<3 {
                let (output, exit) = try bench.run {
                    var plan = bench.shell("ls /proc/$$/fd; readlink /proc/$$/fd/3", output: $0)
                    plan.passed = [passed.raw]
                    return plan
                }
                // A shell keeps 10 and above for itself.
                let open = output.split(separator: "\n").map(String.init).filter { $0.count == 1 }
                #expect(open == ["0", "1", "2", "3"] && output.hasSuffix("/dev/full\n"), "round \(round): \(output)")
                #expect(exit.status == .exited(0))
            }
            #expect(try bench.keeper.takeHeld("many/19").count == 100, "what is held is not the child's to close")
        }
    }

    @Test("more descriptors than are lent, and a program that is not there", arguments: ways)
    func lent(environment: [String: String]) throws {
        try withBench(environment: environment) { bench in
            try hold(bench, 600)
            let files = try (0..<40).map { _ in try File.open("/dev/full") }
            let (output, _) = try bench.run {
                // The shell may be closing its own end of the pipe while ls looks.
                var plan = bench.shell("ls -l /proc/$$/fd 2>/dev/null | grep -c /dev/full", output: $0)
                plan.passed = files.map(\.raw)
                return plan
            }
            #expect(output == "40\n")
            var plan = bench.shell("exit 0")
            plan.executable = "/nonexistent/program"
            guard case .failure(let failure) = try bench.launch(plan) else {
                Issue.record("a program that is not there was started")
                return
            }
            #expect(failure.stage == .exec && failure.errno == .noSuchFileOrDirectory)
        }
    }

    @Test("it is born in its cgroup", arguments: ways)
    func cgroup(environment: [String: String]) throws {
        guard Users.isRoot, let mount = Cgroup.mount else {
            return print("skipped: making a cgroup needs root and cgroup v2")
        }
        let path = mount + "/torpor-spawn-test-\(UUID().uuidString.prefix(8))"
        try Cgroup.create(path)
        defer { try? Cgroup.remove(path) }
        try withBench(environment: environment) { bench in
            let directory = try File.open(path, [.path, .directory])
            let (output, exit) = try bench.run {
                var plan = bench.shell("cat /proc/self/cgroup", output: $0)
                plan.cgroup = directory.raw
                return plan
            }
            #expect(output.contains("0::" + path.dropFirst(mount.count)) && exit.status == .exited(0), "\(output)")
        }
    }

    @Test("a descriptor that cannot be held is told of, one that can is not")
    func quietly() throws {
        try withBench { bench in
            var refused: [String] = []
            bench.keeper.onHoldRefused = { name, _ in refused.append(name) }
            let file = try File.open("/dev/zero")
            bench.keeper.holdQuietly("good", file.raw)
            bench.keeper.holdQuietly("", file.raw)
            #expect(try bench.turn { refused == [""] })
            #expect(try bench.keeper.held() == ["good"])
        }
    }
}
