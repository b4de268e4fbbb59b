// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Processes
import TorporAPI

/// File locks of apps that are suspended (docs/lifecycle.md, "Background time", Locks).
extension LockWatch {
    /// Reports to the core and the history that the app must not stay suspended, because it holds these locks.
    package func isHeld(_ app: AppRuntime, by locks: [LockInTheWay]) {
        let isNews = app.run.locksInTheWay?.map(\.held) != locks.map(\.held)
        app.run.locksInTheWay = locks
        if isNews {
            let sentences = Self.once(locks.map(\.sentence))
            note(app, .lockHeld, text: "cannot stay suspended: " + sentences.joined(separator: "; "))
        }
        deliver(.lockHeld, to: app.id)
    }

    /// Checks the locks of a suspended app at intervals while the app stays suspended.
    func followLocks(_ app: AppRuntime) {
        if app.specification.rules.onLock != .ignore { follow(app) }
    }

    /// Called when torpord has again stopped an app that another process had continued. The stop may have cancelled a
    /// check of the app's locks. Because the app enters no new state, no other event would start the checks again.
    func followOn(_ app: AppRuntime) { if isStillToBeLookedAt(app.id) { followLocks(app) } }

    func isStillToBeLookedAt(_ id: AppID) -> Bool {
        coordinator[id].state == .suspended && coordinator[id].transition == nil && !coordinator[id].isForced
            && apps[id].run.tree != nil && apps[id].specification.rules.onLock != .ignore
    }

    // MARK: For its report

    /// Finds the file locks of an app that is about to be ended, for its report. Stops after two milliseconds.
    func rememberLocks(_ app: AppRuntime) {
        guard let tree = app.run.tree else { return }
        let reading = HeldLockReading(tree.quickMembers())
        _ = reading.read(until: Clock.monotonic() + .milliseconds(2))
        app.run.locks = reading.locks.isEmpty ? nil : reading.locks
    }

    /// The locks because of which the app could not stay suspended, with the processes that waited for them, and the
    /// app's other locks.
    func reportedLocks(_ app: AppRuntime) -> [LockInfo] {
        let inTheWay = app.run.locksInTheWay ?? []
        let others = (app.run.locks ?? []).filter { held in
            !inTheWay.contains { $0.held.lock.file == held.lock.file && $0.held.lock.kind == held.lock.kind }
        }
        return Self.once(inTheWay.map(\.info) + others.map(\.info))
    }

    /// The texts without duplicates: a file may have several locks with the same description.
    private static func once<Text: Hashable>(_ all: [Text]) -> [Text] {
        var seen: Set<Text> = []
        return all.filter { seen.insert($0).inserted }
    }
}
