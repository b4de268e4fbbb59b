// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Linux

extension Launcher {
    /// Whom an app runs as, as of its last launch; nil for the supervisor's own user. Nobody is looked up here.
    func account(of app: AppRuntime) throws(LaunchError) -> Account? {
        guard let names = Account.Names(app.specification) else { return nil }
        guard let known = app.account, known.names == names else {
            throw LaunchError("its user is not known before its next launch")
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
    func identity(of app: AppRuntime) throws(LaunchError) -> User? { try account(of: app)?.user }

    /// The number of an app's user; nil when it cannot be found.
    func userID(of app: AppRuntime) -> UInt32? {
        do throws(LaunchError) {
            return try identity(of: app)?.uid ?? Users.effectiveUID
        } catch {
            return nil
        }
    }

    /// What the keeper is to make of a process for an app; nil to leave it the supervisor's own.
    func credentials(of app: AppRuntime) throws(LaunchError) -> (uid: UInt32, gid: UInt32, groups: [UInt32])? {
        guard let account = try account(of: app) else { return nil }
        let uid = account.user?.uid ?? Users.effectiveUID
        // Asking for what we are already needs no right.
        guard Users.isRoot || uid != Users.effectiveUID || account.gid != Users.effectiveGID else { return nil }
        return (uid, account.gid, account.groups)
    }
}
