// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// How wide characters are on a terminal.
public enum CharacterWidth {
    /// Columns that a scalar takes, by glibc's tables for UTF-8 whatever the process's locale is: 0 for what combines
    /// with the one before, 1 or 2; nil for what is no character to be shown.
    public static func columns(_ scalar: Unicode.Scalar) -> Int? {
        if scalar.value >= 0x20, scalar.value < 0x7f { return 1 }
        let width = tlx_columns(scalar.value)
        return width < 0 ? nil : Int(width)
    }
}

/// The terminal of this process.
public enum TerminalDevice {
    /// Takes the locale of the environment for characters. Whether it is one of UTF-8.
    public static func adoptLocale() -> Bool { tlx_adopt_locale() == 1 }

    /// How many rows and columns it has; nil where it is none, or does not know.
    public static func size(_ descriptor: Int32) -> (rows: Int, columns: Int)? {
        var rows: Int32 = 0
        var columns: Int32 = 0
        guard (try? call { tlx_terminal_size(descriptor, &rows, &columns) }) != nil else { return nil }
        return (Int(rows), Int(columns))
    }

    /// Whether this process is in the foreground of the terminal; in the background the terminal is somebody else's, and
    /// the kernel stops those that change its settings. Where it is not the one that controls this process, as with
    /// `su -c`, nobody is stopped, and everybody is in the foreground.
    public static func isForeground(_ descriptor: Int32) -> Bool {
        let group = tcgetpgrp(descriptor)
        return group < 0 || group == getpgrp()
    }

    /// Returns when this process is in the foreground of the terminal: in the background it is stopped, as any that wants
    /// the terminal is. To be called while signals still act, since what is stopped here reads none. Errors: EIO where
    /// nobody could bring it to the foreground, ENOTTY.
    public static func waitForForeground(_ descriptor: Int32) throws(Errno) {
        // Counts as a change, and changes nothing.
        _ = try call { tcdrain(descriptor) }
    }
}

/// The signals that a terminal sends to what runs on it, and SIGTERM, as something to read: none of them acts by itself
/// any more. To be made before other threads are.
public final class TerminalSignals {
    /// What one of them asks for.
    public enum Kind: Hashable, Sendable {
        /// SIGINT, SIGTERM, SIGHUP or SIGQUIT: to end; which one it was.
        case end(Int32)
        /// SIGTSTP: to stop.
        case stop
        /// SIGCONT: it runs again.
        case resumed
        /// SIGWINCH: the window has another size.
        case resized
    }

    /// Readable when there is one.
    public let descriptor: Descriptor

    /// Begins. Errors: out of descriptors.
    public init() throws(Errno) { descriptor = Descriptor(owning: try call { tlx_terminal_signals() }) }

    /// The next one that came; nil when there is none.
    public func next() -> Kind? {
        guard let number = try? callUnlessBlocked({ tlx_next_signal(descriptor.raw) }), number > 0 else { return nil }
        return switch number {
        case SIGTSTP: .stop
        case SIGCONT: .resumed
        case SIGWINCH: .resized
        default: .end(number)
        }
    }

    /// Stops this process, as SIGTSTP does; returns when it was continued.
    public static func stop() { tlx_take_signal(SIGTSTP) }

    /// Stops this process, as SIGTTOU does to one that wants the terminal from the background; returns when it was
    /// continued, and at once where nobody could do that.
    public static func stopInBackground() { tlx_take_signal(SIGTTOU) }

    /// Ends this process by the signal, so that whoever waits for it is told so.
    public static func end(by number: Int32) { tlx_take_signal(number) }
}
