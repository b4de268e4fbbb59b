// SPDX-License-Identifier: Apache-2.0

/// Launches that somebody is asked about before they begin: a policy, or who knows how much memory there is.
struct LaunchAdmission: Sendable {
    /// Whether anybody is asked at all.
    var isNeeded = false

    init(isNeeded: Bool = false) { self.isNeeded = isNeeded }

    private var asked: Set<AppID> = []
    private var admitted: Set<AppID> = []

    /// Whether it may be launched without another question.
    func isAdmitted(_ app: AppID) -> Bool { !isNeeded || admitted.contains(app) }

    /// Whether its question is new: it is asked once for each launch.
    mutating func ask(_ app: AppID) -> Bool { asked.insert(app).inserted }

    /// Whether the answer to its question is still to come.
    func isAsked(_ app: AppID) -> Bool { asked.contains(app) && !admitted.contains(app) }

    mutating func admit(_ app: AppID) { admitted.insert(app) }

    /// The launch began, or came to nothing.
    mutating func forget(_ app: AppID) {
        guard isNeeded || !asked.isEmpty else { return }
        asked.remove(app)
        admitted.remove(app)
    }

    /// Those that wait for an answer.
    var waiting: [AppID] { asked.subtracting(admitted).sorted() }
}
