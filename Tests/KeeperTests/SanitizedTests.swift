// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing

/// The keeper as it ships, and one that notices every wrong access, where there is a compiler that can build it.
enum SanitizedKeeper {
    static let program: String? = {
        let folder = NSTemporaryDirectory() + "torpor-sanitized-\(ThisProcess.pid)"
        guard (try? File.makeDirectories(folder)) != nil else { return nil }
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Sources").path
        let program = folder + "/torpor-keeper"
        let compiler = Process()
        compiler.executableURL = URL(fileURLWithPath: "/bin/sh")
        compiler.arguments = [
            "-c",
            "exec cc -std=gnu11 -g -O1 -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=undefined "
                + "-I'\(sources)/CKeeperProtocol/include' '\(sources)'/torpor-keeper/*.c "
                + "'\(sources)/CKeeperProtocol/protocol.c' -o '\(program)' 2>'\(folder)/log'",
        ]
        try? compiler.run()
        compiler.waitUntilExit()
        let log = (try? File.readString(folder + "/log")) ?? ""
        atexit {
            try? File.removeTree(NSTemporaryDirectory() + "torpor-sanitized-\(ThisProcess.pid)")
        }
        if compiler.terminationStatus != 0, log.contains("asan") || log.contains("not found") {
            print("skipped: no C compiler with sanitizers here: \(log)")
            return nil
        }
        if compiler.terminationStatus != 0 { Issue.record("the keeper does not compile: \(log)") }
        return compiler.terminationStatus == 0 ? program : nil
    }()

    /// Both.
    static var programs: [String] { [Bench.program] + (program.map { [$0] } ?? []) }
}

@Suite("The keeper under sanitizers", .serialized)
struct SanitizedTests {
    @Test("no wrong access and no undefined behaviour in any scenario")
    func sanitized() throws {
        guard let program = SanitizedKeeper.program else { return }
        for scenario in Scenarios.all + [Scenarios.fallback] {
            try withBench(program: program, ownTorpord: true) { bench in
                try scenario(bench)
                #expect(!bench.log.contains("Sanitizer") && !bench.log.contains("runtime error"), "\(bench.log)")
            }
        }
    }
}
