// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// A child process that this process starts itself, not through torpor-keeper. Reap the child with ``reap()`` or
/// ``reap(within:)``.
public final class ChildProcess {
    /// The child's pid; valid until the child is reaped.
    public let pid: Int32
    /// A pidfd, which becomes readable when the child has ended.
    public let pidfd: Descriptor

    /// The child's wait status (``WaitStatus``); nil until the child was reaped.
    public private(set) var status: Int32?
    private var isAbandoned = false

    /// Runs a program that inherits the given descriptors, at the given numbers.
    ///
    /// - Parameters:
    ///   - path: the program's path.
    ///   - arguments: argv, starting with the program's name.
    ///   - environment: the environment's variables as `K=V`.
    ///   - descriptors: pairs of the number in the child and the descriptor in this process. Descriptors without
    ///     close-on-exec are inherited too.
    ///   - unblocksSignals: whether the program starts with no signal blocked, although this thread blocks some.
    public init(
        _ path: String,
        arguments: [String],
        environment: [String],
        descriptors: [(there: Int32, here: Int32)],
        unblocksSignals: Bool = false
    ) throws(Errno) {
        // First copy all descriptors to numbers above the targets, because otherwise dup2(2) could overwrite a
        // descriptor that has yet to be copied.
        let above = (descriptors.map(\.there).max() ?? 2) + 1
        var copies: [Descriptor] = []
        for (_, here) in descriptors { copies.append(try Descriptor.duplicate(here, minimum: above)) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (index, descriptor) in descriptors.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, copies[index].raw, descriptor.there)
        }
        var argv: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        var envp: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) } + [nil]
        defer { for text in argv + envp { free(text) } }
        var child: pid_t = 0
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        if unblocksSignals {
            var none = sigset_t()
            sigemptyset(&none)
            posix_spawnattr_setsigmask(&attributes, &none)
            posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        }
        let code = posix_spawn(&child, path, &actions, &attributes, &argv, &envp)
        if code != 0 { throw Errno(rawValue: code) }
        pid = child
        pidfd = try Self.watch(child)
    }

    /// Runs a program that inherits this process's descriptors, except for those that are close-on-exec.
    ///
    /// - Parameter ownPID: environment variables to set to the child's pid, such as LISTEN_PID.
    public init(
        _ path: String,
        arguments: [String],
        environment: [String],
        ownPID names: [String]
    ) throws(Errno) {
        let room = String(repeating: "0", count: Int(TLX_PID_ROOM))
        let named = names.map { strdup($0 + "=" + room) }
        var places: [UnsafeMutablePointer<CChar>?] =
            zip(names, named).map { name, entry in entry.map { $0 + name.utf8.count + 1 } } + [nil]
        let others = environment.filter { entry in !names.contains { entry.hasPrefix($0 + "=") } }
        var argv: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        var envp: [UnsafeMutablePointer<CChar>?] = others.map { strdup($0) } + named + [nil]
        defer { for text in argv + envp { free(text) } }
        let child = tlx_spawn_with_own_pid(path, &argv, &envp, &places)
        if child < 0 { throw Errno(rawValue: errno) }
        pid = child
        pidfd = try Self.watch(child)
    }

    /// Runs a program with these three descriptors as standard input, output and error. The kernel kills the program
    /// when the calling thread ends. The program also inherits all descriptors that are not close-on-exec.
    public init(
        _ path: String,
        arguments: [String],
        environment: [String],
        dependingWith standard: (input: Int32, output: Int32, error: Int32)
    ) throws(Errno) {
        var argv: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        var envp: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) } + [nil]
        defer { for text in argv + envp { free(text) } }
        let child = tlx_spawn_dependent(path, &argv, &envp, [standard.input, standard.output, standard.error])
        if child < 0 { throw Errno(rawValue: errno) }
        pid = child
        pidfd = try Self.watch(child)
    }

    private static func watch(_ child: Int32) throws(Errno) -> Descriptor {
        do throws(Errno) {
            return try Pidfd.open(child)
        } catch {
            _ = Glibc.kill(child, SIGKILL)
            _ = waitpid(child, nil, 0)
            throw error
        }
    }

    /// Kills the child; does nothing if it has ended.
    public func kill() {
        if status == nil { try? Pidfd.sendSignal(pidfd.raw, Signal.kill) }
    }

    /// Blocks until the child has ended, and returns its wait status; -1 if other code has reaped the child.
    @discardableResult
    public func reap() -> Int32 {
        if let status { return status }
        var raw: Int32 = 0
        let result = try? call { waitpid(pid, &raw, 0) }
        status = result == pid ? raw : -1
        return status ?? -1
    }

    /// Waits at most `timeout` for the child to end. Returns its wait status; nil if the child has not ended by then.
    public func reap(within timeout: Duration) -> Int32? {
        if let status { return status }
        guard (try? Descriptor.wait(pidfd.raw, timeout: timeout)) ?? true else { return nil }
        return reap()
    }

    /// Makes the child outlive this object: when the object is destroyed, the child is neither killed nor reaped.
    public func abandon() { isAbandoned = true }

    deinit {
        guard !isAbandoned else { return }
        kill()
        reap()
    }
}
