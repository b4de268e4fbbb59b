// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import Linux

/// Archives that an app has saved as another user, before its configuration named the present one.
extension SavedStates {
    /// The user to whom the app's archives must belong; nil if torpord cannot give files away, or does not know the
    /// app's user yet.
    private func rightOwner(of app: AppRuntime) -> ArchiveOwner? {
        guard Users.isRoot else { return nil }
        do throws(LaunchError) {
            let user = try host.user(of: app)
            return ArchiveOwner(uid: user?.uid ?? Users.effectiveUID, gid: user?.gid ?? Users.effectiveGID)
        } catch {
            return nil
        }
    }

    /// Whether another user than the app's owns the archive. That user can still change it, so the app must not get it.
    func isForeign(_ found: ArchiveFolder.Found, _ app: AppRuntime) -> Bool {
        rightOwner(of: app).map { $0.uid != found.uid } ?? false
    }

    /// Before a launch, replaces archives that belong to another user than the app's by copies that belong to the app's
    /// user, those of its scenes too. One that cannot be copied is set aside. Calls `completion` afterwards; at once if
    /// there is nothing to do.
    package func giveArchives(of app: AppRuntime, _ completion: @escaping () -> Void) {
        guard let owner = rightOwner(of: app) else { return completion() }
        var left = 1
        func finish() {
            left -= 1
            if left == 0 { completion() }
        }
        for scene in [nil] + host.sceneNames(of: app).map(Optional.some) {
            let folder = archives(of: app, scene: scene)
            guard let found = folder.found, found.uid != owner.uid, !folders.takesAway(folder) else { continue }
            left += 1
            let work = StateArchives.Work.give(owner, limit: app.specification.stateLimit)
            folders.ask(work, in: folder) { [weak self, weak app] outcome in
                if let self, let app { self.given(app, scene, by: found.uid, outcome) }
                finish()
            }
        }
        finish()
    }

    private func given(_ app: AppRuntime, _ scene: String?, by uid: UInt32, _ outcome: StateArchives.Outcome) {
        let why: String
        switch outcome {
        case .success(let bytes):
            let whose = scene.map { "the state of its scene \($0)" } ?? "the state"
            let size = "\(bytes) byte\(bytes == 1 ? "" : "s")"
            return note(app, .stateKept, text: "got a copy of \(whose) that it saved as user \(uid), \(size)")
        case .failure(.tooLarge(let limit)): why = "it is larger than the \(limit) bytes that state_limit allows"
        case .failure(.refused(let reason)), .failure(.failed(let reason)): why = reason
        }
        let text = "user \(uid), as whom the app ran before, can change it, and it cannot be copied: \(why)"
        if let scene { setAside(of: app, scene: scene, text) } else { setArchiveAside(app, text) }
    }
}
