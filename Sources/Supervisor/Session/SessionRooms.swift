// SPDX-License-Identifier: Apache-2.0

/// The parts of the supervisor that deal with the user who works at the machine.
package final class SessionRooms {
    private unowned(unsafe) let supervisor: Supervisor
    /// Interrupts apps while the machine sleeps or the session is locked.
    private(set) lazy var interruptions = Interruptions(supervisor)
    /// Ends ownerships that are limited in time, counting the time that the machine sleeps.
    private(set) lazy var ownershipClock = OwnershipClock(supervisor)
    /// The helper process in a user's desktop session, which shows alerts and reports the focus.
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
