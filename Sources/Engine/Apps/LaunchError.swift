// SPDX-License-Identifier: Apache-2.0

package import Processes

/// Why a launch could not be tried, as a sentence.
package struct LaunchError: Error, CustomStringConvertible {
    package let description: String
    /// The stage that would have failed.
    package let failure: LaunchFailure?

    package init(_ description: String, _ failure: LaunchFailure? = nil) {
        self.description = description
        self.failure = failure
    }
}
