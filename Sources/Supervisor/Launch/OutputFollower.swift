// SPDX-License-Identifier: Apache-2.0

package import Engine

/// Follows the output of an app.
package protocol OutputFollower: AnyObject {
    /// Called when the app's log may have new output.
    func step()
}

extension AppRuntime {
    /// The clients that follow the app's log. An app that has never run can have some too.
    package var outputFollowers: [any OutputFollower] {
        get { slots[OutputFollowersSlot.self, default: []] }
        _modify { yield &slots[OutputFollowersSlot.self, default: []] }
    }
}

private enum OutputFollowersSlot: Slot { typealias Value = [any OutputFollower] }
