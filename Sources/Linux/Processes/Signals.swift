// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// A signal by number, with its name.
public struct Signal: Hashable, Sendable, CustomStringConvertible {
    /// The signal's number.
    public let number: Int32

    /// Creates a signal from its number.
    public init(_ number: Int32) { self.number = number }

    /// Parses a name: `SIGUSR1`, `USR1`, `10`, `SIGRTMIN+2`.
    public init?(named name: String) {
        guard let number = Signal.number(named: name) else { return nil }
        self.number = number
    }

    /// The signal's name, such as `SIGUSR1`.
    public var description: String { Signal.name(number) }

    /// The terminal was closed. For a daemon, usually a request to reload its configuration.
    public static let hangup = SIGHUP
    /// A user pressed Ctrl-C on the terminal.
    public static let interrupt = SIGINT
    /// A user pressed Ctrl-\ on the terminal. The process dumps core.
    public static let quit = SIGQUIT
    /// The process called abort(3). It dumps core.
    public static let abort = SIGABRT
    /// Kills a process; it cannot be blocked.
    public static let kill = SIGKILL
    /// A signal whose meaning is up to the program.
    public static let user1 = SIGUSR1
    /// A signal whose meaning is up to the program.
    public static let user2 = SIGUSR2
    /// The process has written to a pipe without a reader.
    public static let pipe = SIGPIPE
    /// An alarm(2) expired.
    public static let alarm = SIGALRM
    /// Asks a process to terminate.
    public static let terminate = SIGTERM
    /// A child ended or stopped.
    public static let child = SIGCHLD
    /// Continues a stopped process.
    public static let `continue` = SIGCONT
    /// Stops a process; it cannot be blocked.
    public static let stop = SIGSTOP
    /// A user pressed Ctrl-Z on the terminal.
    public static let terminalStop = SIGTSTP
    /// The terminal was resized.
    public static let window = SIGWINCH

    private static let names: [(String, Int32)] = [
        ("HUP", SIGHUP), ("INT", SIGINT), ("QUIT", SIGQUIT), ("ILL", SIGILL), ("TRAP", SIGTRAP), ("ABRT", SIGABRT),
        ("BUS", SIGBUS), ("FPE", SIGFPE), ("KILL", SIGKILL), ("USR1", SIGUSR1), ("SEGV", SIGSEGV), ("USR2", SIGUSR2),
        ("PIPE", SIGPIPE), ("ALRM", SIGALRM), ("TERM", SIGTERM), ("STKFLT", 16), ("CHLD", SIGCHLD), ("CONT", SIGCONT),
        ("STOP", SIGSTOP), ("TSTP", SIGTSTP), ("TTIN", SIGTTIN), ("TTOU", SIGTTOU), ("URG", SIGURG), ("XCPU", SIGXCPU),
        ("XFSZ", SIGXFSZ), ("VTALRM", SIGVTALRM), ("PROF", SIGPROF), ("WINCH", SIGWINCH), ("IO", SIGIO),
        ("PWR", SIGPWR),
        ("SYS", SIGSYS), ("IOT", SIGABRT), ("POLL", SIGIO), ("CLD", SIGCHLD),
    ]

    /// The number of `SIGUSR1`, `USR1`, `usr1`, `10` or `SIGRTMIN+2`; nil if there is no such signal.
    public static func number(named name: String) -> Int32? {
        if let number = Int32(name) { return number > 0 && number <= tlx_sigrtmax() ? number : nil }
        var short = name.uppercased()
        if short.hasPrefix("SIG") { short.removeFirst(3) }
        if let known = names.first(where: { $0.0 == short }) { return known.1 }
        for (prefix, base) in [("RTMIN", tlx_sigrtmin()), ("RTMAX", tlx_sigrtmax())] where short.hasPrefix(prefix) {
            let rest = short.dropFirst(prefix.count)
            guard let offset = rest.isEmpty ? 0 : Int32(rest), abs(Int(offset)) < 64 else { return nil }
            let number = base + offset
            return number >= tlx_sigrtmin() && number <= tlx_sigrtmax() ? number : nil
        }
        return nil
    }

    /// The name of a signal, such as `SIGUSR1` or `SIGRTMIN+2`; `signal 99` for a signal without a name.
    public static func name(_ number: Int32) -> String {
        if let known = names.first(where: { $0.1 == number }) { return "SIG" + known.0 }
        let first = tlx_sigrtmin()
        if number >= first && number <= tlx_sigrtmax() {
            return number == first ? "SIGRTMIN" : "SIGRTMIN+\(number - first)"
        }
        return "signal \(number)"
    }

    /// Blocks or unblocks a signal in this thread. A blocked signal stays pending, so that the event loop can read it.
    public static func block(_ number: Int32, _ on: Bool = true) throws(Errno) {
        try call { tlx_signal_block(number, on ? 1 : 0) }
    }

    /// Whether the signal was sent while it was blocked, and is still pending.
    public static func isPending(_ number: Int32) -> Bool {
        var set = sigset_t()
        return sigpending(&set) == 0 && sigismember(&set, number) == 1
    }

    /// Ignores a signal in this process (such as SIGPIPE) or, if `on` is false, restores the signal's default action.
    public static func ignore(_ number: Int32, _ on: Bool = true) throws(Errno) {
        try call { tlx_signal_disposition(number, on ? 1 : 0) }
    }

    /// Makes each arrival of a signal increase a counter instead of its default action, in whichever thread the signal
    /// arrives. All signals of the process share one counter. The counter must stay open until the default actions are
    /// restored (`ignore(_:false)`).
    public static func count(_ number: Int32, with counter: EventCounter) throws(Errno) {
        try call { tlx_signal_count(number, counter.raw) }
    }

    /// Sends a signal to a pid. Use this only in tests, and for this process's own unreaped children, whose pids cannot
    /// be reused.
    public static func send(_ number: Int32, to pid: Int32) throws(Errno) { try call { Glibc.kill(pid, number) } }

    /// Whether the process group contains any process, of any user.
    public static func hasGroup(_ number: Int32) -> Bool {
        do throws(Errno) {
            try call { Glibc.kill(-number, 0) }
            return true
        } catch {
            return error == .notPermitted
        }
    }
}

/// Decodes a wait status (wait(2)).
public enum WaitStatus {
    /// The exit code, if the process exited.
    public static func exitCode(_ status: Int32) -> Int32? {
        tlx_wifexited(status) != 0 ? tlx_wexitstatus(status) : nil
    }

    /// The signal that terminated the process, and whether the process dumped core.
    public static func signal(_ status: Int32) -> (number: Int32, coreDumped: Bool)? {
        tlx_wifsignaled(status) != 0 ? (tlx_wtermsig(status), tlx_wcoredump(status) != 0) : nil
    }
}
