// SPDX-License-Identifier: Apache-2.0

/// Launches that need permission first: from a policy, or because of memory.
struct LaunchAdmission: Sendable {
    /// Whether launches need this permission at all.
    var isNeeded = false

    init(isNeeded: Bool = false) { self.isNeeded = isNeeded }

    private var asked: Set<AppID> = []
    private var admitted: Set<AppID> = []

    /// Whether the app may be launched now: permission was given or is not needed.
    func isAdmitted(_ app: AppID) -> Bool { !isNeeded || admitted.contains(app) }

    /// Notes that permission was asked for; returns false if it was already, since it is asked once per launch.
    mutating func ask(_ app: AppID) -> Bool { asked.insert(app).inserted }

    /// Whether permission was asked for and is not yet given.
    func isAsked(_ app: AppID) -> Bool { asked.contains(app) && !admitted.contains(app) }

    mutating func admit(_ app: AppID) { admitted.insert(app) }

    /// Forgets the permission of a launch that has begun or was cancelled.
    mutating func forget(_ app: AppID) {
        guard isNeeded || !asked.isEmpty else { return }
        asked.remove(app)
        admitted.remove(app)
    }

    /// The apps whose launches wait for permission.
    var waiting: [AppID] { asked.subtracting(admitted).sorted() }
}
