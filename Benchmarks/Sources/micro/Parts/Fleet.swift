// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Linux
import Recovery

/// A thousand apps as in torpord's shell: the coordinator, and the recovery file that records each decision first.
final class Fleet {
    static let size = 1_000

    var coordinator: Coordinator
    let recovery: RecoveryFile
    let slots: [Int]
    var now = Duration.seconds(1)

    /// All apps are active and have a watchdog.
    init() throws {
        var rules = AppRules()
        rules.watchdog = .seconds(10)
        coordinator = try Coordinator((0..<Fleet.size).map { AppDefinition(name: "app\($0)", rules: rules) })
        let path = Scratch.path("recovery")
        recovery = try RecoveryFile(creating: path, recordBytes: 1_024, capacity: Fleet.size)
        let file = recovery
        slots = try (0..<Fleet.size).map { try file.add("app\($0)") }
        for app in 0..<Fleet.size {
            _ = coordinator.launch(app, foreground: true, now: now)
            take(.launched, of: app)
            guard coordinator.machine(app).state == .active else {
                throw WentWrong("an app did not become active: \(coordinator.machine(app).state)")
            }
        }
    }

    /// Passes an event to the coordinator and records its decisions.
    @discardableResult
    func take(_ event: AppEvent, of app: AppID) -> Int {
        let actions = coordinator.handle(event, of: app, now: now)
        record()
        return actions.count
    }

    /// The same for a request of a user.
    @discardableResult
    func ask(_ request: Request, of app: AppID) throws -> Int {
        let actions = try coordinator.request(request, of: app, now: now)
        record()
        return actions.count
    }

    private func record() {
        for app in coordinator.takeUnrecorded() {
            recovery.write(slots[app], undone: 0) { memory in
                var writer = RecordWriter(memory)
                coordinator.encode(app, into: &writer)
                return writer.count
            }
        }
    }
}
