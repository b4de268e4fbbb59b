// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
package import Engine
import Lifecycle
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
        return known
    }

    /// The account that was looked up in the app's present run, for all commands of this run. Nil if a command must
    /// look up the account itself: if no app runs, what an earlier run has used may be another user's by now.
    func accountOfRun(_ app: AppRuntime) -> Account? {
        guard app.run.hasAccount, machine(app).isAlive, let known = app.account,
            known.names == Account.Names(app.specification)
        else { return nil }
        return known
    }

    /// Continues a launch when the app's account is looked up. The data folders, all commands of the run and its main
    /// process use this account. If the user has changed, it gets the former user's files in the state directory.
    func withAccount(_ app: AppRuntime, _ next: @escaping (Launcher) -> Void) {
        let names = Account.Names(app.specification)
        let state = supervisor.savedStates.stateDirectory(of: app)
        guard names != nil || StateDirectory.isForeign(state) else { return next(self) }
        // Users inside a container have other ids outside.
        let looksForOthers = !app.isStateDirectorySeen && app.specification.container == nil
        app.isStateDirectorySeen = true
        read(for: app) { () throws(LaunchError) -> FoundAccount in
            var found = FoundAccount(account: try Account.find(names, known: nil))
            let owner = DataPlace.Owner(found.account)
            do throws(Errno) {
                found.left = try StateDirectory.give(state, to: owner)
                if found.left == nil, looksForOthers {
                    found.left = StateDirectory.othersFiles(in: state, than: owner)
                }
            } catch {
                found.trouble = "has no state directory: cannot give \(state) to \(owner.name) (\(error))"
            }
            return found
        } _: { [weak self, weak app] result in
            guard let self, let app else { return }
            switch result {
            case .success(let found):
                if let account = found.account {
                    app.account = account
                    app.run.hasAccount = true
                }
                if let left = found.left { self.note(app, .dataNotCleared, text: left) }
                if let trouble = found.trouble { self.note(app, .noStateDirectory, text: trouble) }
                next(self)
            case .failure(let error):
                app.run.launchFailure = error.failure
                self.launchRefused(app, error.description)
            }
        }
    }

    /// Stores an account that was looked up for an app: as that of the present run, if it was looked up in this `run`
    /// and that one is not known yet, or if no account for the same names of user and groups is stored.
    func adopt(_ account: Account?, of app: AppRuntime, in run: Incarnation? = nil) {
        guard let account, account.names == Account.Names(app.specification) else { return }
        let isOfRun = run === app.run && machine(app).isAlive && !app.run.hasAccount
        guard isOfRun || app.account?.names != account.names else { return }
        app.account = account
        if isOfRun { app.run.hasAccount = true }
    }

    /// Looks up the account of an app that an earlier torpord may have launched. The lookup may block: call this only
    /// before the loop runs.
    func lookUpAccount(of app: AppRuntime) {
        guard let names = Account.Names(app.specification), app.account?.names != names,
            let account = try? Account.find(names)
        else { return }
        app.account = account
        app.run.hasAccount = true
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
        Self.credentials(try account(of: app))
    }

    /// The user and groups that torpor-keeper sets for a process with this account; nil if the process keeps those of
    /// the supervisor.
    static func credentials(_ account: Account?) -> (uid: UInt32, gid: UInt32, groups: [UInt32])? {
        guard let account else { return nil }
        let uid = account.user?.uid ?? Users.effectiveUID
        // If torpord already runs with these ids, return nil, because setting ids requires a privilege.
        guard Users.isRoot || uid != Users.effectiveUID || account.gid != Users.effectiveGID else { return nil }
        return (uid, account.gid, account.groups)
    }
}

/// What a background thread has found for a launch.
private struct FoundAccount: Sendable {
    /// The app's account; nil for the supervisor's own user.
    let account: Account?
    /// A sentence about files in the state directory that kept their owner; nil if there are none.
    var left: String?
    /// A sentence about the error with which the state directory could not be given to the user; nil for none.
    var trouble: String?
}
