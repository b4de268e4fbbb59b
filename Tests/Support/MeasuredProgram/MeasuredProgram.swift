// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
package import Processes
package import Testing

/// A Python program in a session of its own, as an app is, that does what it is told line by line; ended and reaped
/// with the last reference.
package final class MeasuredProgram {
    package let tree: ProcessTree
    private let input: Descriptor
    private let output: Descriptor
    private var hasEnded = false

    private static let prelude = """
        import os, sys, time, signal, socket, threading
        def say(*a): os.write(1, (' '.join(map(str, a)) + '\\n').encode())
        def spin(seconds):
         end = time.process_time() + seconds
         while time.process_time() < end: pass
        say('ready')
        for line in sys.stdin:
         exec(line)
         say('done')

        """

    /// `launcher`: what the program is run by. `cgroup`: the path of the one that it is put into.
    package init(launcher: [String] = [], cgroup: String? = nil) throws {
        let ((itsInput, input), (output, itsOutput)) = (try Descriptor.pipe(), try Descriptor.pipe())
        (self.input, self.output) = (input, output)
        let pid = try Self.spawn(
            ["/usr/bin/env"] + launcher + ["python3", "-c", Self.prelude],
            input: itsInput.raw,
            output: itsOutput.raw
        )
        if let cgroup { try Cgroup.add(cgroup, pid: pid) }
        tree = ProcessTree(
            tag: AppTag(app: UUID().uuidString, incarnation: 1),
            main: try Identity(of: pid),
            pidfd: try Pidfd.open(pid),
            cgroupPath: cgroup,
            adopter: ThisProcess.pid
        )
        itsOutput.close()
        try #require(line() == "ready", "it does not begin")
    }

    private static func spawn(_ arguments: [String], input: Int32, output: Int32) throws -> Int32 {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, input, 0)
        posix_spawn_file_actions_adddup2(&actions, output, 1)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // POSIX_SPAWN_SETSID
        posix_spawnattr_setflags(&attributes, 0x80)
        var argv: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        var envp: [UnsafeMutablePointer<CChar>?] = [strdup("PATH=/usr/local/bin:/usr/bin:/bin"), nil]
        defer { for text in argv + envp { free(text) } }
        var pid: pid_t = 0
        let code = posix_spawn(&pid, arguments[0], &actions, &attributes, &argv, &envp)
        if code != 0 { throw Errno(rawValue: code) }
        return pid
    }

    package var pid: Int32 { tree.leader.pid }

    /// Has it do something and waits until it is done, at most 60 s.
    package func run(_ code: String) throws {
        try Descriptor.writeAll(input.raw, Array((code + "\n").utf8))
        try #require(line() == "done", "it does not do: \(code)")
    }

    /// What an expression is.
    package func ask(_ expression: String) throws -> String {
        try Descriptor.writeAll(input.raw, Array("say(\(expression))\n".utf8))
        let answer = try line()
        try #require(line() == "done")
        return answer
    }

    /// Whether it has used no processor time for 20 ms.
    package func sleeps() throws -> Bool {
        let before = try File.read("/proc/\(pid)/schedstat")
        usleep(20_000)
        return try File.read("/proc/\(pid)/schedstat") == before
    }

    private func line() throws -> String {
        var bytes: [UInt8] = []
        while bytes.last != UInt8(ascii: "\n") {
            try #require(try Descriptor.wait(output.raw, timeout: .seconds(60)), "it says nothing")
            let byte = try #require(try Descriptor.read(output.raw, maximum: 1))
            try #require(!byte.isEmpty, "it has ended")
            bytes += byte
        }
        return String(decoding: bytes.dropLast(), as: UTF8.self)
    }

    /// Ends it and what it has started.
    package func end() {
        guard !hasEnded else { return }
        hasEnded = true
        for pid in tree.members() + [pid] { kill(pid, SIGKILL) }
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    }

    deinit { end() }
}

/// Looks again until it is so, at most 60 s.
package func eventually(_ what: Comment, _ body: () throws -> Bool) throws {
    let deadline = Clock.monotonic() + .seconds(60)
    while try !body() {
        try #require(Clock.monotonic() < deadline, what)
        usleep(1000)
    }
}
