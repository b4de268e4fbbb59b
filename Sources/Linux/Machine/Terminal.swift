// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// The width of characters on a terminal.
public enum CharacterWidth {
    /// How many columns a scalar takes according to glibc's UTF-8 tables, independent of the locale: 0 for combining
    /// characters, otherwise 1 or 2. Nil if the scalar is not printable.
    public static func columns(_ scalar: Unicode.Scalar) -> Int? {
        if scalar.value >= 0x20, scalar.value < 0x7f { return 1 }
        let width = tlx_columns(scalar.value)
        return width < 0 ? nil : Int(width)
    }
}

/// The terminal of this process.
public enum TerminalDevice {
    /// Adopts the environment's locale for character types (LC_CTYPE). Returns whether it is a UTF-8 locale.
    public static func adoptLocale() -> Bool { tlx_adopt_locale() == 1 }

    /// The terminal's rows and columns; nil if the descriptor is not a terminal, or the size is unknown.
    public static func size(_ descriptor: Int32) -> (rows: Int, columns: Int)? {
        var rows: Int32 = 0
        var columns: Int32 = 0
        guard (try? call { tlx_terminal_size(descriptor, &rows, &columns) }) != nil else { return nil }
        return (Int(rows), Int(columns))
    }

    /// Runs `body` while the terminal does not show typed characters. During this time, no key sends a signal.
    public static func withoutEcho<Result>(
        _ descriptor: Int32,
        _ body: () throws(Errno) -> Result
    ) throws(Errno) -> Result {
        try call { tlx_set_echo(descriptor, 0) }
        defer { _ = tlx_set_echo(descriptor, 1) }
        return try body()
    }

    /// Whether this process is in the terminal's foreground process group. The kernel stops a background process that
    /// changes the terminal's settings. If the terminal is not this process's controlling terminal (as with `su -c`),
    /// the kernel stops no process, and every process counts as foreground.
    public static func isForeground(_ descriptor: Int32) -> Bool {
        let group = tcgetpgrp(descriptor)
        return group < 0 || group == getpgrp()
    }

    /// Blocks while this process is in the background: the kernel stops the process (SIGTTOU) until it is in the
    /// foreground. Call this while signals still have their default action, because a stopped process cannot read
    /// signals. Throws EIO if no other process could bring this process to the foreground, ENOTTY if the descriptor is
    /// not a terminal.
    public static func waitForForeground(_ descriptor: Int32) throws(Errno) {
        // tcdrain(3) counts as a change of the terminal's settings, and the kernel stops a background process that
        // tries such a change.
        _ = try call { tcdrain(descriptor) }
    }
}

/// Reads SIGTERM and the signals that a terminal sends as events. These signals then no longer have their default
/// action. Create this object before any other thread starts.
public final class TerminalSignals {
    /// What a signal asks this process to do, or what it reports.
    public enum Kind: Hashable, Sendable {
        /// Terminate; the signal is SIGINT, SIGTERM, SIGHUP or SIGQUIT.
        case end(Int32)
        /// SIGTSTP: stop.
        case stop
        /// SIGCONT: the process was continued.
        case resumed
        /// SIGWINCH: the window was resized.
        case resized
    }

    /// The descriptor from which the signals are read. It is readable while a signal is pending.
    public let descriptor: Descriptor

    /// Blocks the signals and opens the descriptor. Throws EMFILE if the process is out of descriptors.
    public init() throws(Errno) { descriptor = Descriptor(owning: try call { tlx_terminal_signals() }) }

    /// The next pending signal; nil if there is none.
    public func next() -> Kind? {
        guard let number = try? callUnlessBlocked({ tlx_next_signal(descriptor.raw) }), number > 0 else { return nil }
        return switch number {
        case SIGTSTP: .stop
        case SIGCONT: .resumed
        case SIGWINCH: .resized
        default: .end(number)
        }
    }

    /// Stops this process, as SIGTSTP does. Returns when the process is continued.
    public static func stop() { tlx_take_signal(SIGTSTP) }

    /// Stops this process as SIGTTOU stops a background process that uses the terminal. Returns when the process is
    /// continued, or at once if no other process could continue it.
    public static func stopInBackground() { tlx_take_signal(SIGTTOU) }

    /// Terminates this process by the signal, so that its parent sees this signal as the cause.
    public static func end(by number: Int32) { tlx_take_signal(number) }
}
