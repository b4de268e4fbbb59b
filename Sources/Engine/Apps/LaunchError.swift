// SPDX-License-Identifier: Apache-2.0

package import Processes

/// The reason, as a sentence, why torpord could not begin a launch.
package struct LaunchError: Error, CustomStringConvertible {
    package let description: String
    /// The stage of the launch that would have failed, with its errno; nil if the error belongs to no stage.
    package let failure: LaunchFailure?

    package init(_ description: String, _ failure: LaunchFailure? = nil) {
        self.description = description
        self.failure = failure
    }
}
