// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Linux

/// The user and groups that an app runs as, from the machine's user database.
package struct Account: Sendable {
    /// The user and groups that an app's configuration names.
    package struct Names: Hashable, Sendable {
        package let user: String?
        package let group: String?
        let supplementary: [String]?

        /// The names in an app's configuration; nil if the app runs as torpord's user.
        package init?(_ specification: AppSpecification) {
            user = specification.user
            group = specification.group
            supplementary = specification.supplementaryGroups
            if user == nil, group == nil, supplementary == nil { return nil }
        }
    }

    /// What the configuration names.
    package let names: Names
    /// The configured user; nil for torpord's own.
    package let user: User?
    /// The ID of the process's group. The configuration may name another group than the user's primary group.
    package let gid: UInt32
    /// All groups of the process, including `gid`.
    package let groups: [UInt32]

    /// The rights with which torpord accesses files on behalf of the app; nil for torpord's own rights.
    package var fileRights: FileRights? {
        user.flatMap { FileRights(name: $0.name, uid: $0.uid, gid: gid, groups: groups) }
    }

    /// Looks up an account, which may block on a network directory. A user that is not found is an error: the app
    /// must never run as torpord's user instead.
    ///
    /// - Throws: ``LaunchError`` when a user or group is not found.
    package static func find(_ names: Names) throws(LaunchError) -> Account {
        let group = try names.group.map { name throws(LaunchError) in try Self.group(name) }
        let user = try names.user.map { name throws(LaunchError) in try Self.user(name, group) }
        let gid = group ?? user?.gid ?? Users.effectiveGID
        var groups = [gid]
        if let supplementary = names.supplementary {
            for name in supplementary { groups.append(try Self.group(name)) }
        } else if let user {
            groups = Users.groups(of: user.name, primary: gid)
        }
        return Account(names: names, user: user, gid: gid, groups: groups)
    }

    /// The account for `names`: `known`, or, if that is nil, what a lookup finds. Nil if there are no names.
    package static func find(_ names: Names?, known: Account?) throws(LaunchError) -> Account? {
        guard let names else { return nil }
        if let known { return known }
        return try find(names)
    }

    private static func user(_ name: String, _ group: UInt32?) throws(LaunchError) -> User {
        if let user = Users.lookup(name) { return user }
        guard let number = UInt32(name) else {
            throw LaunchError("there is no user \(name), or it cannot be looked up now")
        }
        guard let group else {
            throw LaunchError("user \(name) has no entry in the user database, so its group is not known: set group")
        }
        return User(name: name, uid: number, gid: group, home: "/", shell: "/bin/sh")
    }

    private static func group(_ name: String) throws(LaunchError) -> UInt32 {
        guard let number = Users.group(name) else {
            throw LaunchError("there is no group \(name), or it cannot be looked up now")
        }
        return number
    }
}

extension AppRuntime {
    /// The account that the app's last launch used.
    package var account: Account? {
        get { slots[AccountSlot.self] }
        set { slots[AccountSlot.self] = newValue }
    }
}

extension Incarnation {
    /// Whether the app's account was looked up in this run. If not, it is that of an earlier run, whose user may have
    /// another uid by now.
    package var hasAccount: Bool {
        get { slots[HasAccountSlot.self] ?? false }
        set { slots[HasAccountSlot.self] = newValue }
    }
}

private enum AccountSlot: Slot { typealias Value = Account }
private enum HasAccountSlot: Slot { typealias Value = Bool }
