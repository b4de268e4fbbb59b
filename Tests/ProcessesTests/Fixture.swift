// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Processes
import Testing

/// An app for a test: a Python program in a session of its own, as the keeper would launch it; ended and reaped with
/// the last reference. This process stands in for the keeper: orphans become its children.
final class TestApp {
    let pid: Int32
    let tag: AppTag
    let tree: ProcessTree
    private let output: Descriptor
    private var buffered: [UInt8] = []
    private var everSeen: Set<Int32> = []

    init(
        _ program: String,
        cgroup: String? = nil,
        tagged: Bool = true,
        name: String = UUID().uuidString
    ) throws {
        try ThisProcess.becomeSubreaper()
        let (read, write) = try Descriptor.pipe()
        tag = AppTag(app: name, incarnation: 3)
        var environment = ["PATH=/usr/local/bin:/usr/bin:/bin", "PYTHONUNBUFFERED=1"]
        if tagged { environment += ["TORPOR_APP=\(name)", "TORPOR_INCARNATION=3"] }
        let prelude =
            "import os, sys, time, signal, threading\ndef say(*a): os.write(1, (' '.join(map(str, a)) + '\\n').encode())\n"
        pid = try Self.spawn(["/usr/bin/env", "python3", "-c", prelude + program], environment, output: write.raw)
        if let cgroup { try Cgroup.add(cgroup, pid: pid) }
        output = read
        tree = ProcessTree(
            tag: tag,
            main: try Identity(of: pid),
            pidfd: try Pidfd.open(pid),
            cgroupPath: cgroup,
            adopter: ThisProcess.pid
        )
    }

    private static func spawn(_ arguments: [String], _ environment: [String], output: Int32) throws -> Int32 {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output, 1)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var mask = sigset_t()
        sigemptyset(&mask)
        posix_spawnattr_setsigmask(&attributes, &mask)
        // POSIX_SPAWN_SETSID, POSIX_SPAWN_SETSIGMASK
        posix_spawnattr_setflags(&attributes, 0x80 | 0x08)
        var argv: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        var envp: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) } + [nil]
        defer { for text in argv + envp { free(text) } }
        var pid: pid_t = 0
        let code = posix_spawn(&pid, arguments[0], &actions, &attributes, &argv, &envp)
        if code != 0 { throw Errno(rawValue: code) }
        return pid
    }

    /// The next line that the program says, within 60 s.
    func line() throws -> String {
        while true {
            if let end = buffered.firstIndex(of: 10) {
                defer { buffered.removeSubrange(...end) }
                return String(decoding: buffered[..<end], as: UTF8.self)
            }
            try #require(try Descriptor.wait(output.raw, timeout: .seconds(60)), "the program says nothing")
            let part = try #require(try Descriptor.read(output.raw, maximum: 4096))
            try #require(!part.isEmpty, "the program has ended")
            buffered += part
        }
    }

    /// Whether nothing comes for a while: what is stopped is silent.
    func isSilent(for time: Duration) throws -> Bool {
        buffered = []
        // What was in the pipe before does not count.
        while try Descriptor.wait(output.raw, timeout: .zero) {
            guard let part = try Descriptor.read(output.raw, maximum: 65_536), !part.isEmpty else { return true }
        }
        return try !Descriptor.wait(output.raw, timeout: time)
    }

    func stop() throws -> StopResult {
        try repeated {
            self.tree.stopPass()
        } until: {
            $0 != .again
        }
    }

    func kill() throws -> KillResult {
        try repeated {
            for pid in self.tree.members() { self.everSeen.insert(pid) }
            return self.tree.killPass()
        } until: {
            $0 == .gone
        }
    }

    /// Every thread's state letter, as the kernel says.
    func states() -> String {
        var letters = ""
        for pid in tree.members() {
            for task in (try? ProcFS.tasks(pid)) ?? [] {
                if let state = try? ProcFS.taskState(pid, task) { letters.append(state) }
            }
        }
        return letters
    }

    deinit {
        _ = try? kill()
        for pid in everSeen.union([pid]) {
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        }
    }
}

/// Repeats until the result is right, at most 10 s, with a pause of 1 ms as a caller's timer would make.
func repeated<Result>(_ body: () throws -> Result, until done: (Result) -> Bool) throws -> Result {
    let deadline = Clock.monotonic() + .seconds(60)
    while true {
        let result = try body()
        if done(result) { return result }
        try #require(Clock.monotonic() < deadline, "not done within a minute: \(result)")
        usleep(1000)
    }
}
