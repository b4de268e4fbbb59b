// SPDX-License-Identifier: Apache-2.0

/// Launches that need a permission first: from a policy, or from the check for memory.
struct LaunchAdmission: Sendable {
    /// Whether permission is needed at all.
    var isNeeded = false

    init(isNeeded: Bool = false) { self.isNeeded = isNeeded }

    private var asked: Set<AppID> = []
    private var admitted: Set<AppID> = []

    /// Whether the app may be launched without asking (again).
    func isAdmitted(_ app: AppID) -> Bool { !isNeeded || admitted.contains(app) }

    /// Notes that permission was asked for; false if it was already: it is asked once per launch.
    mutating func ask(_ app: AppID) -> Bool { asked.insert(app).inserted }

    /// Whether permission was asked for and is not given yet.
    func isAsked(_ app: AppID) -> Bool { asked.contains(app) && !admitted.contains(app) }

    mutating func admit(_ app: AppID) { admitted.insert(app) }

    /// The launch has begun or was cancelled.
    mutating func forget(_ app: AppID) {
        guard isNeeded || !asked.isEmpty else { return }
        asked.remove(app)
        admitted.remove(app)
    }

    /// The apps that wait for permission.
    var waiting: [AppID] { asked.subtracting(admitted).sorted() }
}
