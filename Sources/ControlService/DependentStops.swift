// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Lifecycle
import Supervisor
import TorporAPI

/// The apps that a stop or a restart also affects, because they require the stopped app.
struct DependentStops {
    /// The apps that have an item in the call: each gets only one, though it may require several of the stopped apps.
    private var answeredFor: Set<AppID>
    private let requiredBy: [String: [AppRuntime]]

    init(of selected: [AppRuntime], all apps: [AppRuntime]) {
        answeredFor = Set(selected.map(\.id))
        var requiredBy: [String: [AppRuntime]] = [:]
        for app in apps {
            for name in app.specification.requires { requiredBy[name, default: []].append(app) }
        }
        self.requiredBy = requiredBy
    }

    /// The apps that require an app, directly or through others, and match the condition.
    func dependents(of app: AppRuntime, where isSo: (AppRuntime) -> Bool) -> [AppRuntime] {
        var found: [AppRuntime] = []
        var seen: Set = [app.id]
        var next = requiredBy[app.name] ?? []
        while let other = next.popLast() {
            guard seen.insert(other.id).inserted else { continue }
            next += requiredBy[other.name] ?? []
            if isSo(other) { found.append(other) }
        }
        return found.sorted { $0.id < $1.id }
    }

    /// Returns the apps that have no item in the call yet, and counts them as having one from now on.
    mutating func newOnes(_ along: [AppRuntime]) -> [AppRuntime] {
        along.filter { answeredFor.insert($0.id).inserted }
    }
}

extension ControlService {
    /// Whether a stop or restart of another app also stops or restarts this app, which requires that one.
    func goesAlong(_ app: AppRuntime, with request: VerbRequest) -> Bool {
        let machine = coordinator.machine(app.id)
        switch request.verb {
        // The app runs, or is about to.
        case .stop: return machine.isAlive || machine.isWaitingToLaunch
        // The app runs, and nothing else is being done to it.
        case .restart: return machine.isAlive && machine.transition != .terminating && !coordinator.isHeld(app.id)
        default: return false
        }
    }

    /// The items of a call for the dependents that it stops too. A restart only waits for the apps that it names.
    func companions(
        _ along: [AppRuntime],
        of app: AppRuntime,
        _ request: VerbRequest,
        isRepeated: Bool
    ) -> [PendingCall.Item] {
        guard request.verb == .stop else { return [] }
        return along.map { other in
            let machine = coordinator.machine(other.id)
            var item = PendingCall.Item(
                app: other.id,
                target: .gone,
                incarnation: machine.incarnation,
                generation: isRepeated ? -1 : machine.goalGeneration
            )
            item.isRepeated = isRepeated
            item.cause = app.name
            return item
        }
    }
}
