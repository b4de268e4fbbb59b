// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Permissions

extension AppRuntime {
    /// The users' answers to the app's permission requests.
    package var permissionAnswers: [PermissionAnswer] {
        get { slots[PermissionAnswersSlot.self] ?? [] }
        set { slots[PermissionAnswersSlot.self] = newValue.isEmpty ? nil : newValue }
    }

    /// What the app may do in its sandbox.
    package var grants: PermissionGrants { specification.sandbox.grants(permissionAnswers) }

    /// Whether torpord may do for the app what `gift` names, such as showing alerts. A sandboxed app needs a
    /// permission for it.
    package func allows(_ gift: Permission.Gift) -> Bool { specification.sandbox.allows(gift, permissionAnswers) }
}

private enum PermissionAnswersSlot: Slot { typealias Value = [PermissionAnswer] }
