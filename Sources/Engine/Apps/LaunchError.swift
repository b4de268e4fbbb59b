// SPDX-License-Identifier: Apache-2.0

package import Processes

/// What kept a launch from being tried, in a sentence.
package struct LaunchError: Error, CustomStringConvertible {
    package let description: String
    /// The stage that it would have failed at.
    package let failure: LaunchFailure?

    package init(_ description: String, _ failure: LaunchFailure? = nil) {
        self.description = description
        self.failure = failure
    }
}
