// SPDX-License-Identifier: Apache-2.0

/// The exit statuses of the command line.
package enum Outcome: Int32 {
    case done = 0
    case failed = 1
    case usage = 2
    case notRunning = 3
    /// No app has the name.
    case unknown = 4
    /// No supervisor answers.
    case noSupervisor = 5
    /// The program to run is not executable (the status that shells use).
    case notExecutable = 126
    /// The program to run does not exist (the status that shells use).
    case notFound = 127
}

/// A failed command.
package struct Failure: Error {
    package var status: Outcome
    /// A sentence that says what to do; nil if the command has printed everything already.
    package var message: String?

    package init(status: Outcome, message: String? = nil) {
        self.status = status
        self.message = message
    }
}
