// SPDX-License-Identifier: Apache-2.0

import Lifecycle

extension Part {
    /// An app goes from the foreground to suspended and back: eight calls per round.
    static let transition = Part(
        name: "transition",
        what: "one of a thousand apps takes an event, and its record is written"
    ) {
        let fleet = try Fleet()
        return { count in
            var actions = 0
            for round in 0..<count / 8 {
                let app = round % Fleet.size
                fleet.now += .milliseconds(1)
                actions += try fleet.ask(.suspend, of: app)
                actions += fleet.take(.stopConfirmed, of: app)
                actions += try fleet.ask(.resume, of: app)
                actions += fleet.take(.heartbeat, of: app)
                actions += try fleet.ask(.foreground, of: app)
                actions += fleet.take(.heartbeat, of: app)
                actions += try fleet.ask(.interrupt(begin: true), of: app)
                actions += try fleet.ask(.interrupt(begin: false), of: app)
            }
            guard fleet.coordinator.machine(0).state == .active, actions >= count / 2 else {
                throw WentWrong("the walk ended \(fleet.coordinator.machine(0).state), after \(actions) actions")
            }
        }
    }
}
