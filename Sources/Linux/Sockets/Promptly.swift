// SPDX-License-Identifier: Apache-2.0

import CLinux

/// Calls in which the kernel lets go of what somebody else has made, a socket above all.
///
/// Who lets go last of a TCP socket that lingers (SO_LINGER) waits until its data has gone out, or as long as its maker
/// said; also who only drops a message with it, unopened. A signal ends that wait, so one comes every few milliseconds.
public enum Promptly {
    /// Carries out `body` under such signals, of which it sees no more than EINTR. Not within another.
    public static func run<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        tlx_promptly(1)
        defer { tlx_promptly(0) }
        return try body()
    }
}
