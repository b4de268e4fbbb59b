// SPDX-License-Identifier: Apache-2.0

import WireText

/// Reads `[supervisor.protected]`, and checks the keys of apps with protected data.
enum ProtectionReader {
    static let supervisor: [Key<SupervisorProtection>] = [
        .value("lock_with", \.lockWith, Read.choices),
        .value("protected_deadline", \.deadline, Read.positiveDuration),
        .value("unlock", \.unlock, Read.command),
    ]

    static let app: [Key<AppDraft>] = [
        .optional("protected", \.specification.data.protection.kind) { Read.choice($0, $1) },
        .value("protected_fallback", \.specification.data.protection.fallback) { Read.choice($0, $1) },
        .value("launch_when_locked", \.specification.data.protection.launchesWhenLocked, Read.boolean),
    ]

    static func check(_ draft: AppDraft) {
        let app = draft.specification
        let protection = app.data.protection
        guard protection.kind != nil else {
            for key in ["protected_fallback", "launch_when_locked"] where draft.origins[key] != nil {
                draft.warning(key, "does nothing without protected")
            }
            return
        }
        if app.container != nil {
            draft.error("protected", "does not go with container: a container does not see the folder")
        }
        if app.scenes != nil {
            draft.error(
                "protected",
                "does not go with scenes of a template: write scenes = { inside = true }, or no scenes"
            )
        }
    }

    @Sendable static func members(of protection: SupervisorProtection) -> [String: String] {
        [
            "lock_with": Write.value(.array(protection.lockWith.map { .string($0.rawValue) })),
            "protected_deadline": Quantity.text(protection.deadline),
            "unlock": Write.value(.array(protection.unlock.map { .string($0) })),
        ]
    }
}
