// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Policies
import PolicyLibraries
import Testing
import TorporPolicyABI

/// The host as it ships, built so that each wrong access and each undefined operation ends it.
@Suite("A policy's process under sanitizers", .serialized)
struct SanitizedTests {
    /// Nil where no compiler here can build it; the run says so.
    private static let program: String? = {
        let program = Libraries.folder + "/torpor-policy-host-sanitized"
        let sources = Libraries.root + "Sources/"
        do {
            let folder = sources + "torpor-policy-host"
            let files = try File.list(folder).filter { $0.hasSuffix(".c") }.sorted().map { folder + "/" + $0 }
            try Libraries.compile(
                "gcc",
                ["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror"]
                    + ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
                    + ["-I", sources + "CPolicyWire/include", "-I", sources + "TorporPolicyABI/include"]
                    + files
                    + (try File.list(sources + "CPolicyWire")).filter { $0.hasSuffix(".c") }
                    .map { sources + "CPolicyWire/" + $0 } + ["-o", program]
            )
            return program
        } catch {
            print("skipped: no C compiler with sanitizers builds torpor-policy-host here: \(error)")
            return nil
        }
    }()

    /// A sanitizer's shadow takes terabytes of addresses, its search for leaks another thread, which no policy's process
    /// may have. A crash of the dynamic linker is no finding.
    private func start(_ path: String, options: [PolicyOption] = []) throws -> HostProcess? {
        guard let program = Self.program else { return nil }
        return try Hosts.start(path, options: options) { settings in
            settings.program = program
            settings.addressSpace = 0
            settings.environment += ["ASAN_OPTIONS=detect_leaks=0:handle_segv=0:handle_abort=0"]
        }
    }

    /// Whether a sanitizer has written the last line.
    private func isFound(_ error: any Error) -> Bool {
        let text = "\(error)"
        return text.contains("Sanitizer") || text.contains("runtime error") || text.contains("ABORTING")
    }

    @Test("a policy that means no harm is loaded, asked many times and ended without a wrong access")
    func conversation() throws {
        let options = [PolicyOption(key: "greeting", value: .string(String(repeating: "ä", count: 2_000)))]
        for options in [[], options] {
            guard let host = try start(try Libraries.path("echo.c"), options: options) else { return }
            for count in [1, 3, 64] {
                let events = (0..<count).map { Hosts.event(TORPOR_EVENT_STATE, app: UInt32($0 % 5), from: 1, to: 3) }
                let answer = try host.ask(events, deadline: Hosts.patience)
                #expect(answer.advice.count == count)
            }
        }
    }

    @Test("libraries that are cut short or changed at random are refused or loaded, and never read beyond their end")
    func brokenLibraries() throws {
        let whole = try File.read(try Libraries.path("echo.c"), limit: 1 << 24)
        var random = SystemRandomNumberGenerator()
        let path = Libraries.folder + "/broken.so"
        for round in 0..<60 {
            var bytes = whole
            if round % 3 == 0 {
                bytes.removeLast(Int.random(in: 1..<bytes.count, using: &random))
            } else {
                // The headers, by which the host finds what the library names. What is code may do anything.
                for _ in 0..<Int.random(in: 1...8, using: &random) {
                    bytes[Int.random(in: 0..<1_024, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
            }
            try File.replace(path, bytes)
            do {
                guard let host = try start(path) else { return }
                _ = try host.ask([Hosts.event(TORPOR_EVENT_TIMER)], deadline: Hosts.patience)
            } catch {
                #expect(!isFound(error), "round \(round): \(error)")
            }
        }
    }
}
