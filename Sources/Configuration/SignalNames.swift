/// Signals by name, with the numbers of signal(7) for x86, Arm and RISC-V.
enum SignalNames {
    static let hangUp: Int32 = 1
    static let abort: Int32 = 6
    static let kill: Int32 = 9
    static let terminate: Int32 = 15
    static let `continue`: Int32 = 18
    static let stop: Int32 = 19

    /// From 1, in order of their numbers.
    static let names = [
        "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1",
        "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP",
        "SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR",
        "SIGSYS",
    ]

    /// The number of `SIGUSR1`, `USR1`, `SIGRTMIN+3` or `RTMAX-1`.
    static func number(_ name: String) -> Int32? {
        let full = name.hasPrefix("SIG") ? name : "SIG" + name
        if let index = names.firstIndex(of: full) { return Int32(index + 1) }
        switch full {
        case "SIGPOLL": return 29
        case "SIGIOT": return 6
        case "SIGRTMIN": return 34
        case "SIGRTMAX": return 64
        default: break
        }
        if full.hasPrefix("SIGRTMIN+"), let offset = Int32(full.dropFirst(9)), (0...30).contains(offset) {
            return 34 + offset
        }
        if full.hasPrefix("SIGRTMAX-"), let offset = Int32(full.dropFirst(9)), (0...30).contains(offset) {
            return 64 - offset
        }
        return nil
    }
}
