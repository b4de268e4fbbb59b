// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Permissions

extension AppRuntime {
    /// What persons have answered to the app.
    package var permissionAnswers: [PermissionAnswer] {
        get { slots[PermissionAnswersSlot.self] ?? [] }
        set { slots[PermissionAnswersSlot.self] = newValue.isEmpty ? nil : newValue }
    }

    /// What the app may do in its sandbox.
    package var grants: PermissionGrants { specification.sandbox.grants(permissionAnswers) }

    /// Whether torpord does this for the app: for every app but one in a sandbox that was not allowed it.
    package func allows(_ gift: Permission.Gift) -> Bool { specification.sandbox.allows(gift, permissionAnswers) }
}

private enum PermissionAnswersSlot: Slot { typealias Value = [PermissionAnswer] }
