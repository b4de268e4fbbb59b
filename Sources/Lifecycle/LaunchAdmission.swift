// SPDX-License-Identifier: Apache-2.0

/// Launches that wait for permission: from a policy, or until there is enough memory.
struct LaunchAdmission: Sendable {
    /// Whether launches need this permission. If false, every launch is permitted.
    var isNeeded = false

    init(isNeeded: Bool = false) { self.isNeeded = isNeeded }

    private var asked: Set<AppID> = []
    private var admitted: Set<AppID> = []

    /// Whether the app may be launched now: permission was given, or launches need no permission.
    func isAdmitted(_ app: AppID) -> Bool { !isNeeded || admitted.contains(app) }

    /// Records that permission for the app's launch was requested. Returns false if permission was already requested,
    /// because each launch needs only one request.
    mutating func ask(_ app: AppID) -> Bool { asked.insert(app).inserted }

    /// Whether permission for the app's launch was requested and is not given yet.
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
