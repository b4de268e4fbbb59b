// SPDX-License-Identifier: Apache-2.0

import Processes

/// What kept a launch from being tried, in a sentence.
struct LaunchTrouble: Error, CustomStringConvertible {
    let description: String
    /// The stage that it would have failed at.
    let failure: LaunchFailure?

    init(_ description: String, _ failure: LaunchFailure? = nil) {
        self.description = description
        self.failure = failure
    }
}
