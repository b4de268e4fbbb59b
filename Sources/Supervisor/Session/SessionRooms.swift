// SPDX-License-Identifier: Apache-2.0

/// The rooms that deal with the person at the machine.
package final class SessionRooms {
    private unowned(unsafe) let supervisor: Supervisor
    /// Follows sleep of the machine and the lock of the session.
    private(set) lazy var interruptions = Interruptions(supervisor)
    /// The helper in a person's session.
    private(set) lazy var desktop = Desktop(supervisor)
    /// Alerts of apps for people, which the helper shows.
    private(set) lazy var alerts = {
        let alerts = AppAlerts(supervisor.engine, supervisor.recorder, supervisor)
        alerts.screen = desktop
        return alerts
    }()

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }
}
