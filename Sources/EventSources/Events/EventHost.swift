// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import Lifecycle
import Linux
package import Mailbox
package import Schedules
package import Store

/// What events need of the rest of the supervisor, and no more.
package protocol EventHost: DescriptorKeeping {
    /// Puts something into an app's mailbox.
    ///
    /// - Throws: ``Mailbox/Refusal`` when it has no place for it.
    func add(_ mail: MailDraft, for app: AppRuntime) throws(Mailbox.Refusal)
    /// The app is told what waits for it, if it can be told now.
    func deliverMail(to app: AppRuntime)
    /// What waits and was to wake the app is tried again.
    func retryMail(of app: AppRuntime)
    /// What waits for the app.
    func mail(for app: AppRuntime) -> [Mail]
    /// The app need not be told of it any more.
    func acknowledged(_ mail: Int64, by app: AppRuntime)

    /// The clocks that timers go by.
    var clocks: ClockPair { get }
    /// Whether the user has not unlocked the session since the boot.
    var isBeforeFirstUnlock: Bool { get }
    /// Whether memory is short.
    var isMemoryShort: Bool { get }
    /// Whether launches wait for memory.
    var isMemoryAwaited: Bool { get }
    /// Whether nothing can be launched any more.
    var isKeeperLost: Bool { get }

    /// Whom sockets are to belong to.
    var socketAccounts: SocketAccounts { get set }
    /// Who is believed where the machine is, beside root and the supervisor's own user.
    var gpsdUser: UInt32? { get }
    /// Where gpsd is asked.
    var gpsd: GPSAddress { get }
    /// Reads what may wait for a disk or a server.
    var lookups: BackgroundWorker { get }
    /// What is known of a timer or of an app's fetches is kept for the next boot.
    func keep(_ schedule: StoredSchedule)
    /// The timer is gone for good.
    func forget(_ schedule: StoredSchedule.Key)
    /// A folder that goes with the boot.
    var runtimeDirectory: String { get }
}

/// A part of what ``Wakes`` consists of, which outlives it.
protocol EventRoom: Room {
    var wakes: Wakes { get }
}

extension EventRoom {
    package var engine: Engine { wakes.engine }
    package var recorder: Recorder { wakes.recorder }
    package var host: any EventHost { wakes.host }
    package var sockets: ListeningSockets { wakes.sockets }
}
