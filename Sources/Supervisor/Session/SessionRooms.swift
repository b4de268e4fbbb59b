// SPDX-License-Identifier: Apache-2.0

/// The parts of the supervisor that deal with the user who works at the machine.
package final class SessionRooms {
    private unowned(unsafe) let supervisor: Supervisor
    /// Follows sleep of the machine and the lock of the session.
    private(set) lazy var interruptions = Interruptions(supervisor)
    /// Counts the machine's sleep for ownerships that have a time.
    private(set) lazy var ownershipClock = OwnershipClock(supervisor)
    /// The helper process in a user's desktop session.
    private(set) lazy var desktop = Desktop(supervisor)
    /// What users are doing in apps.
    private(set) lazy var activities = Activities(supervisor.engine, supervisor.recorder, supervisor)
    /// Alerts that apps show to users. The helper process displays them.
    private(set) lazy var alerts = {
        let alerts = AppAlerts(supervisor.engine, supervisor.recorder, supervisor)
        alerts.screen = desktop
        return alerts
    }()

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }
}
