// SPDX-License-Identifier: Apache-2.0

import CLinux

/// Limits how long close(2) and similar calls block when they close a socket that another process has configured.
///
/// The last close(2) of a TCP socket with SO_LINGER blocks until the socket's data is sent or the linger time is over.
/// Discarding an unread message that carries such a socket blocks too. A signal ends this wait early, so a timer sends
/// a signal every few milliseconds.
public enum Promptly {
    /// Runs `body` while a signal interrupts it every few milliseconds. In `body`, the signals only cause EINTR. Calls
    /// must not be nested.
    public static func run<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        tlx_promptly(1)
        defer { tlx_promptly(0) }
        return try body()
    }
}
