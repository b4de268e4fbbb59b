// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Lifecycle
import Supervisor
import TorporAPI

/// Finds the dependents that a stop or restart of an app affects too, because they require that app.
struct DependentStops {
    /// The apps for which the call already has an item: the part of a call that waits for one app. Each app gets only
    /// one item, even if it requires several of the stopped apps.
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

    /// The apps that require this app, directly or through other apps, and fulfil the condition.
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

    /// A text that names the dependents which a restart affects too; empty if there are none.
    static func restartedToo(_ names: [String]) -> String {
        guard names.count > 1 else { return names.isEmpty ? "" : "; \(names[0]), which requires it, is restarted too" }
        let shown = names.prefix(names.count > 5 ? 4 : names.count - 1).joined(separator: ", ")
        let last = names.count > 5 ? "\(names.count - 4) others" : names[names.count - 1]
        return "; \(shown) and \(last), which require it, are restarted too"
    }

    /// Returns those of the apps that have no item in the call yet, and marks them as having one.
    mutating func newOnes(_ along: [AppRuntime]) -> [AppRuntime] {
        along.filter { answeredFor.insert($0.id).inserted }
    }
}

extension ControlService {
    /// Whether a dependent (an app that requires an app in the request) is in a state in which the request stops or
    /// restarts the dependent too. The caller checks that the app is a dependent.
    func goesAlong(_ app: AppRuntime, with request: VerbRequest) -> Bool {
        let machine = coordinator.machine(app.id)
        switch request.verb {
        // A stop affects the app only if it runs or waits to be launched.
        case .stop: return machine.isAlive || machine.isWaitingToLaunch
        // A restart affects the app only if it runs, is not terminating, and has no request that waits for other apps.
        case .restart: return machine.isAlive && machine.transition != .terminating && !coordinator.isHeld(app.id)
        default: return false
        }
    }

    /// The items for the dependents that a stop affects too. A restart has no such items: the call waits only for the
    /// apps that the request names, and their results mention the dependents.
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

extension ControlService {
    /// The text to add if this call launched an app that others require, and these stay down because a user stopped
    /// them, mostly with this one; else empty.
    func staysStopped(_ item: PendingCall.Item, _ app: AppRuntime) -> String {
        guard coordinator.machine(app.id).incarnation > item.incarnation else { return "" }
        var names: [String] = []
        var seen: Set = [app.id]
        var next = coordinator.dependents(app.id)
        while let other = next.popLast() {
            guard seen.insert(other).inserted else { continue }
            let machine = coordinator.machine(other)
            guard machine.isStopped, !machine.isAlive, !machine.isWaitingToLaunch else { continue }
            next += coordinator.dependents(other)
            names.append(apps[other].name)
        }
        guard let first = names.sorted().first else { return "" }
        guard names.count > 1 else {
            return "; \(first), which requires it, stays stopped: ‘torpor start \(first)’ launches it"
        }
        let more = "\(first) and \(names.count - 1) more, which require it"
        return "; \(more), stay stopped: ‘torpor start APP’ launches one"
    }
}

extension ControlService {
    /// The apps in the order in which the request acts on them. A launch waits for the launch of another app only if
    /// that other launch was requested first. For `foreground` the order stays as given, because the app that comes
    /// last ends up in front.
    func inOrder(_ selected: [AppRuntime], _ request: VerbRequest) -> [AppRuntime] {
        guard selected.count > 1 else { return selected }
        return switch request.verb {
        case .suspend: coordinator.dependentsFirst(selected.map(\.id)).map { apps[$0] }
        case .start, .restart, .background, .resume: coordinator.earlierFirst(selected.map(\.id)).map { apps[$0] }
        default: selected
        }
    }
}
