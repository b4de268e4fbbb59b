// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A process started by the harness, in its own process group: Ctrl-C reaches only the harness, which then ends the
/// others in order.
final class Child {
    let pid: pid_t
    private(set) var status: Int32?
    /// The write end of its standard input, if requested.
    private var input: Int32 = -1

    /// Standard output and error are appended to files; standard input is /dev/null or a pipe. `passed` becomes
    /// descriptor 3.
    init(
        _ arguments: [String],
        environment: [String: String] = [:],
        hasInput: Bool = false,
        passed: Int32? = nil,
        output: String = "/dev/null",
        errors: String = "/dev/null"
    ) throws {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        var pipes: [Int32] = [-1, -1]
        if hasInput {
            guard pipe(&pipes) == 0 else { throw Trouble("no pipe: \(String(cString: strerror(errno)))") }
            _ = fcntl(pipes[1], F_SETFD, FD_CLOEXEC)
            posix_spawn_file_actions_adddup2(&actions, pipes[0], 0)
            if pipes[0] > 2 { posix_spawn_file_actions_addclose(&actions, pipes[0]) }
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0o644)
        posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT | O_APPEND, 0o644)
        if let passed { posix_spawn_file_actions_adddup2(&actions, passed, 3) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var defaults = sigset_t()
        sigemptyset(&defaults)
        sigaddset(&defaults, SIGPIPE)
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF))
        let all = Child.environment.merging(environment) { $1 }.map { "\($0)=\($1)" }
        let argv = arguments.map { strdup($0) } + [nil]
        let envp = all.map { strdup($0) } + [nil]
        defer { for pointer in argv + envp { free(pointer) } }
        var child: pid_t = 0
        let error = posix_spawnp(&child, arguments[0], &actions, &attributes, argv, envp)
        if hasInput { close(pipes[0]) }
        guard error == 0 else {
            if hasInput { close(pipes[1]) }
            throw Trouble("\(arguments[0]) cannot be started: \(String(cString: strerror(error)))")
        }
        pid = child
        input = pipes[1]
    }

    deinit { if input >= 0 { close(input) } }

    private static let environment = ProcessInfo.processInfo.environment

    /// Whether it is still running.
    var isRunning: Bool {
        if status != nil { return false }
        var value: Int32 = 0
        if waitpid(pid, &value, WNOHANG) == pid { status = value }
        return status == nil
    }

    /// Does nothing once the process has ended: its pid may belong to another process.
    func signal(_ number: Int32) {
        if isRunning { kill(pid, number) }
    }

    /// Writes a line to its standard input.
    func write(line: String) {
        _ = (line + "\n").withCString { Glibc.write(input, $0, strlen($0)) }
    }

    /// Waits for its end; returns the wait status.
    @discardableResult
    func wait(_ seconds: Double, _ what: String) throws -> Int32 {
        guard try waitUntil(seconds, { !isRunning }), let status else {
            throw Trouble("\(what) has not ended within \(Int(seconds)) s")
        }
        return status
    }

    /// Ends the process: SIGTERM, then SIGKILL after `grace` seconds.
    func end(grace: Double = 10) {
        signal(SIGTERM)
        let limit = now() + grace
        while isRunning, now() < limit { pause(0.002) }
        signal(SIGKILL)
        while isRunning { pause(0.002) }
    }

    /// Runs a command; returns the duration of the whole process in seconds. Throws if it fails.
    static func time(_ arguments: [String], seconds: Double = 120, okay: Set<Int32> = [0]) throws -> Double {
        let began = now()
        let child = try Child(arguments)
        var value: Int32 = 0
        // Blocking, so that the harness itself uses no CPU.
        let isOver = try Interruption.limited(seconds) { isOver in
            while waitpid(child.pid, &value, 0) < 0, errno == EINTR {
                do { try Interruption.check() } catch {
                    child.end()
                    throw error
                }
                if isOver() { return true }
            }
            return false
        }
        let took = now() - began
        if isOver {
            child.end()
            throw Trouble("\(arguments.joined(separator: " ")) has not ended within \(Int(seconds)) s")
        }
        child.status = value
        let code = (value >> 8) & 0xff
        guard value & 0x7f == 0, okay.contains(code) else {
            throw Trouble("\(arguments.joined(separator: " ")) failed (status \(code), signal \(value & 0x7f))")
        }
        return took
    }

    /// Runs a command; returns its standard output. Throws if it fails.
    static func output(_ arguments: [String], seconds: Double = 60) throws -> String {
        let file = NSTemporaryDirectory() + "bench-output-\(getpid())"
        defer { unlink(file) }
        unlink(file)
        let child = try Child(arguments, output: file, errors: file)
        defer { child.end(grace: 1) }
        let status = try child.wait(seconds, arguments[0])
        let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
        guard status == 0 else {
            let said = text.trimmingCharacters(in: .whitespacesAndNewlines)
            throw Trouble("\(arguments.joined(separator: " ")) failed: \(said)")
        }
        return text
    }
}
