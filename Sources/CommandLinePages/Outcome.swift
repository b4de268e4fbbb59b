// SPDX-License-Identifier: Apache-2.0

/// Every way to end, and the exit status for it.
package enum Outcome: Int32 {
    case done = 0
    case failed = 1
    case usage = 2
    case notRunning = 3
    case unknown = 4
    /// The program that was to be run cannot be, as shells say it.
    case notExecutable = 126
    /// There is no such program, as shells say it.
    case notFound = 127
}

/// The command did not do what was asked.
package struct Failure: Error {
    package var status: Outcome
    /// A sentence that says what to do; nil when everything was said already.
    package var message: String?

    package init(status: Outcome, message: String? = nil) {
        self.status = status
        self.message = message
    }
}
