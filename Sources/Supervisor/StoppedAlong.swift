import Configuration
import Lifecycle

/// Which apps a stop takes along, because they require what is stopped.
struct StoppedAlong {
    /// Each is answered for once, though it may require several of those that are stopped.
    private var answeredFor: Set<AppID>
    private let selected: Set<AppID>
    private let requiredBy: [String: [AppRuntime]]

    init(of selected: [AppRuntime], all apps: [AppRuntime]) {
        self.selected = Set(selected.map(\.id))
        answeredFor = self.selected
        var requiredBy: [String: [AppRuntime]] = [:]
        for app in apps {
            for name in app.specification.requires { requiredBy[name, default: []].append(app) }
        }
        self.requiredBy = requiredBy
    }

    /// Those that require an app, directly or through others, and are so; not those that the stop is asked for itself.
    func dependents(of app: AppRuntime, where isSo: (AppRuntime) -> Bool) -> [AppRuntime] {
        var found: [AppRuntime] = []
        var seen = selected.union([app.id])
        var next = requiredBy[app.name] ?? []
        while let other = next.popLast() {
            guard seen.insert(other.id).inserted else { continue }
            next += requiredBy[other.name] ?? []
            if isSo(other) { found.append(other) }
        }
        return found.sorted { $0.id < $1.id }
    }

    /// Those among them that have no item yet; they have one from now on.
    mutating func newOnes(_ along: [AppRuntime]) -> [AppRuntime] {
        along.filter { answeredFor.insert($0.id).inserted }
    }
}

extension Supervisor {
    /// Whether it runs or is about to: a stop of what it requires stops it too.
    func isGoing(_ app: AppRuntime) -> Bool {
        let machine = coordinator.machine(app.id)
        return machine.isAlive || machine.isWaitingToLaunch
    }

    /// What to wait for in those that are stopped along with an app.
    func companions(_ along: [AppRuntime], of app: AppRuntime, isRepeated: Bool) -> [Waiter.Item] {
        along.map { other in
            let machine = coordinator.machine(other.id)
            var item = Waiter.Item(
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
