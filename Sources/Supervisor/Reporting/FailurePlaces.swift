// SPDX-License-Identifier: Apache-2.0

/// How many apps may run their commands of `on_failure` at the same time: if all apps of a machine fail at once, their
/// commands must not take it over.
///
/// A command may last as long as its deadline, so the apps of one user could keep all places for hours. So commands of
/// one app of each user may always run.
struct FailurePlaces {
    /// The number of places for all users together.
    static let most = 8

    /// The number of apps whose commands run, by user.
    private var running: [String: Int] = [:]
    private var count = 0

    /// Whether the commands of another app of this user may begin.
    func isFree(for user: String) -> Bool { count < Self.most || running[user] == nil }

    mutating func take(for user: String) {
        count += 1
        running[user, default: 0] += 1
    }

    mutating func giveBack(for user: String) {
        guard let left = running[user].map({ $0 - 1 }) else { return }
        count -= 1
        running[user] = left > 0 ? left : nil
    }
}
