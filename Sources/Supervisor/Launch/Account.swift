// SPDX-License-Identifier: Apache-2.0

import Configuration
import Linux

/// Whom an app runs as, by the machine's databases of users and groups.
struct Account: Sendable {
    /// What of an app's configuration it follows from.
    struct Names: Hashable, Sendable {
        let user: String?
        let group: String?
        let supplementary: [String]?

        /// nil where an app runs as the supervisor does.
        init?(_ specification: AppSpecification) {
            user = specification.user
            group = specification.group
            supplementary = specification.supplementaryGroups
            if user == nil, group == nil, supplementary == nil { return nil }
        }
    }

    /// The user that is named; nil where it is the supervisor's own.
    let user: User?
    /// Its group, which need not be the user's primary one.
    let gid: UInt32
    /// All its groups.
    let groups: [UInt32]

    /// With which rights files are looked at for it; nil: with the supervisor's own.
    var fileRights: FileRights? {
        user.flatMap { FileRights(name: $0.name, uid: $0.uid, gid: gid, groups: groups) }
    }

    /// Looks it up, which may wait for a directory on the network. Who cannot be found is nobody: never the supervisor's own
    /// user in its place.
    static func find(_ names: Names) throws(LaunchTrouble) -> Account {
        let group = try names.group.map { name throws(LaunchTrouble) in try Self.group(name) }
        let user = try names.user.map { name throws(LaunchTrouble) in try Self.user(name, group) }
        let gid = group ?? user?.gid ?? Users.effectiveGID
        var groups = [gid]
        if let names = names.supplementary {
            for name in names { groups.append(try Self.group(name)) }
        } else if let user {
            groups = Users.groups(of: user.name, primary: gid)
        }
        return Account(user: user, gid: gid, groups: groups)
    }

    private static func user(_ name: String, _ group: UInt32?) throws(LaunchTrouble) -> User {
        if let user = Users.lookup(name) { return user }
        guard let number = UInt32(name) else {
            throw LaunchTrouble("there is no user \(name), or it cannot be looked up now")
        }
        guard let group else {
            throw LaunchTrouble("user \(name) has no entry in the user database, so its group is not known: set group")
        }
        return User(name: name, uid: number, gid: group, home: "/", shell: "/bin/sh")
    }

    private static func group(_ name: String) throws(LaunchTrouble) -> UInt32 {
        guard let number = Users.group(name) else {
            throw LaunchTrouble("there is no group \(name), or it cannot be looked up now")
        }
        return number
    }
}

extension Launcher {
    /// Whom an app runs as, as of its last launch; nil for the supervisor's own user. Nobody is looked up here.
    func account(of app: AppRuntime) throws(LaunchTrouble) -> Account? {
        guard let names = Account.Names(app.specification) else { return nil }
        guard let known = app.account, known.names == names else {
            throw LaunchTrouble("whom it runs as is not known before its next launch")
        }
        return known.account
    }

    /// Keeps whom an app that no torpord has launched yet will run as, as far as is known now.
    func adopt(_ account: Account?, of app: AppRuntime) {
        guard let account, let names = Account.Names(app.specification), app.account?.names != names else { return }
        app.account = (names, account)
    }

    /// Looks up whom an app runs as that an earlier torpord may have launched: before the loop runs.
    func lookUpAccount(of app: AppRuntime) {
        guard let names = Account.Names(app.specification), app.account?.names != names else { return }
        adopt(try? Account.find(names), of: app)
    }

    /// The user that an app's configuration names; nil for the supervisor's own.
    func identity(of app: AppRuntime) throws(LaunchTrouble) -> User? { try account(of: app)?.user }

    /// The number of an app's user; nil when it cannot be found.
    func userID(of app: AppRuntime) -> UInt32? {
        do throws(LaunchTrouble) {
            return try identity(of: app)?.uid ?? Users.effectiveUID
        } catch {
            return nil
        }
    }

    /// What the keeper is to make of a process for an app; nil to leave it the supervisor's own.
    func credentials(of app: AppRuntime) throws(LaunchTrouble) -> (uid: UInt32, gid: UInt32, groups: [UInt32])? {
        guard let account = try account(of: app) else { return nil }
        let uid = account.user?.uid ?? Users.effectiveUID
        // Asking for what we are already needs no right.
        guard Users.isRoot || uid != Users.effectiveUID || account.gid != Users.effectiveGID else { return nil }
        return (uid, account.gid, account.groups)
    }
}

extension AppRuntime {
    /// Whom it runs as, and what that follows from, as of its last launch.
    var account: (names: Account.Names, account: Account)? {
        get { slots[AccountSlot.self] }
        set { slots[AccountSlot.self] = newValue }
    }
}

private enum AccountSlot: Slot { typealias Value = (names: Account.Names, account: Account) }
