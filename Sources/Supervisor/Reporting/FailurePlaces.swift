// SPDX-License-Identifier: Apache-2.0

/// How many apps may run their commands of `on_failure` at the same time: if all apps of a machine fail at once, their
/// commands must not take it over.
///
/// A command may last as long as its deadline, so the apps of one user could keep all places for hours. So one app of
/// each user may exceed the limit. Where each app has a user of its own, this must not undo the limit: there are at most
/// twice as many in all.
struct FailurePlaces {
    /// The number of places for all users together.
    static let most = 8

    /// The number of apps whose commands run, by user.
    private var running: [String: Int] = [:]
    private var count = 0
    /// Users of whom an app may have become able to begin since all apps that wait were last looked at.
    private var changed: Set<String> = []
    /// Whether a place was given back since then although twice as many had one: then this may be any user.
    private var isAnyChanged = false

    /// Whether the commands of another app of this user may begin.
    func isFree(for user: String) -> Bool {
        count < Self.most || count < Self.most * 2 && running[user] == nil
    }

    mutating func take(for user: String) {
        count += 1
        running[user, default: 0] += 1
    }

    mutating func giveBack(for user: String) {
        guard let left = running[user].map({ $0 - 1 }) else { return }
        if count >= Self.most * 2 { isAnyChanged = true }
        count -= 1
        running[user] = left > 0 ? left : nil
        changed.insert(user)
    }

    /// Notes that another app of this user wants to begin.
    mutating func wants(_ user: String) { changed.insert(user) }

    /// Notes that none of the apps that wait may begin.
    mutating func settle() { (changed, isAnyChanged) = ([], false) }

    /// The first of the apps that wait which may begin now; nil if there is none. Thousands of apps may fail at once,
    /// so this looks at all of them only if one is likely to be found.
    ///
    /// - Parameters:
    ///   - user: the user of an app. If the app had to wait, it was given to ``wants(_:)``.
    ///   - isReady: whether the commands of the app may begin if there is a place.
    func first<App>(of apps: [App], user: (App) -> String, isReady: (App) -> Bool) -> Int? {
        if count < Self.most { return apps.firstIndex(where: isReady) }
        guard count < Self.most * 2 else { return nil }
        if isAnyChanged { return apps.firstIndex { running[user($0)] == nil && isReady($0) } }
        let users = changed.filter { running[$0] == nil }
        guard !users.isEmpty else { return nil }
        return apps.firstIndex { users.contains(user($0)) && isReady($0) }
    }
}
