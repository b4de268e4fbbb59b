import Foundation
import Linux
import Testing

@Suite("The keeper under sanitizers", .serialized)
struct SanitizedTests {
    @Test("no wrong access and no undefined behaviour in any scenario")
    func sanitized() throws {
        let folder = NSTemporaryDirectory() + "torpor-sanitized-\(UUID().uuidString.prefix(8))"
        try File.makeDirectories(folder)
        defer { try? File.removeTree(folder) }
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
        try compiler.run()
        compiler.waitUntilExit()
        let log = try File.readString(folder + "/log")
        if compiler.terminationStatus != 0, log.contains("asan") || log.contains("not found") {
            print("skipped: no C compiler with sanitizers here: \(log)")
            return
        }
        try #require(compiler.terminationStatus == 0, "\(log)")
        for scenario in Scenarios.all + [Scenarios.fallback] {
            let environment = ["ASAN_OPTIONS": "detect_leaks=0"]
            try withBench(program: program, environment: environment, ownTorpord: true) { bench in
                try scenario(bench)
                #expect(!bench.log.contains("Sanitizer") && !bench.log.contains("runtime error"), "\(bench.log)")
            }
        }
    }
}
