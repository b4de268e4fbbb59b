// SPDX-License-Identifier: Apache-2.0

package import CommandLinePages

extension Outcome {
    /// Runs `body`, and returns the exit status. Reports a failure on standard error.
    package static func status(_ body: () throws -> Void) -> Int32 {
        do {
            try body()
            return done.rawValue
        } catch let failure as Failure {
            if let message = failure.message { Complaint.say(message, status: failure.status) }
            return failure.status.rawValue
        } catch {
            Complaint.say("\(error)", status: failed)
            return failed.rawValue
        }
    }
}
