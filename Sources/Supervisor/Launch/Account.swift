// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import Linux

extension Launcher {
    /// The account that the last launch of the app has looked up; nil if the app runs as the supervisor's own user.
    /// Throws before the app's first launch: this function does not look up the account itself, because a lookup may
    /// block.
    func account(of app: AppRuntime) throws(LaunchError) -> Account? {
        guard let names = Account.Names(app.specification) else { return nil }
        guard let known = app.account, known.names == names else {
            throw LaunchError("its user is not known before its next launch")
        }
        return known.account
    }

    /// Stores the account of an app, unless an account for the same names of user and groups is stored already.
    func adopt(_ account: Account?, of app: AppRuntime) {
        guard let account, let names = Account.Names(app.specification), app.account?.names != names else { return }
        app.account = (names, account)
    }

    /// Looks up the account of an app that an earlier torpord may have launched. The lookup may block: call this only
    /// before the loop runs.
    func lookUpAccount(of app: AppRuntime) {
        guard let names = Account.Names(app.specification), app.account?.names != names else { return }
        adopt(try? Account.find(names), of: app)
    }

    /// The user that an app's configuration names; nil for the supervisor's own user.
    func identity(of app: AppRuntime) throws(LaunchError) -> User? { try account(of: app)?.user }

    /// The uid of an app's user; nil if it is not known.
    package func userID(of app: AppRuntime) -> UInt32? {
        do throws(LaunchError) {
            return try identity(of: app)?.uid ?? Users.effectiveUID
        } catch {
            return nil
        }
    }

    /// The user and groups that torpor-keeper sets for a process of an app; nil if the process keeps those of the
    /// supervisor.
    func credentials(of app: AppRuntime) throws(LaunchError) -> (uid: UInt32, gid: UInt32, groups: [UInt32])? {
        guard let account = try account(of: app) else { return nil }
        let uid = account.user?.uid ?? Users.effectiveUID
        // If torpord already runs with these ids, return nil, because setting ids requires a privilege.
        guard Users.isRoot || uid != Users.effectiveUID || account.gid != Users.effectiveGID else { return nil }
        return (uid, account.gid, account.groups)
    }
}
