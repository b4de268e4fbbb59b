// SPDX-License-Identifier: Apache-2.0

import CLinux

/// Keeps close(2) and similar calls from blocking for long when they close a socket that another process configured.
///
/// The last close(2) of a TCP socket with SO_LINGER blocks until the socket's data is sent or the linger time is
/// over. Discarding an unread message that carries such a socket blocks too. A signal ends this wait early, so a
/// timer sends a signal every few milliseconds.
public enum Promptly {
    /// Runs `body` while signals interrupt it every few milliseconds; `body` sees them only as EINTR. Calls must not
    /// be nested.
    public static func run<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        tlx_promptly(1)
        defer { tlx_promptly(0) }
        return try body()
    }
}
