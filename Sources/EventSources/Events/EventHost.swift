// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import Lifecycle
import Linux
package import Mailbox
package import Schedules
package import Store

/// The parts of the supervisor that events need.
package protocol EventHost: DescriptorKeeping {
    /// Adds a message to an app's mailbox.
    ///
    /// - Throws: ``Mailbox/Refusal`` if the mailbox is full.
    func add(_ mail: MailDraft, for app: AppRuntime) throws(Mailbox.Refusal)
    /// Delivers the app's queued messages, if that is possible now.
    func deliverMail(to app: AppRuntime)
    /// Retries the wake-up for queued messages.
    func retryMail(of app: AppRuntime)
    /// The app's queued messages.
    func mail(for app: AppRuntime) -> [Mail]
    /// The app no longer needs the message.
    func acknowledged(_ mail: Int64, by app: AppRuntime)

    /// The clocks of timers.
    var clocks: ClockPair { get }
    /// Whether the user has not unlocked the session since the boot.
    var isBeforeFirstUnlock: Bool { get }
    /// Whether memory is short.
    var isMemoryShort: Bool { get }
    /// Whether launches wait for memory.
    var isMemoryAwaited: Bool { get }
    /// Whether nothing can be launched any more.
    var isKeeperLost: Bool { get }

    /// The owners of sockets.
    var socketAccounts: SocketAccounts { get set }
    /// The user whose gpsd is trusted, besides root and the supervisor's own user.
    var gpsdUser: UInt32? { get }
    /// The address of gpsd.
    var gpsd: GPSAddress { get }
    /// For reads that may block on a disk or a server.
    var lookups: BackgroundWorker { get }
    /// Stores the state of a timer or of an app's fetches for the next boot.
    func keep(_ schedule: StoredSchedule)
    /// The timer was removed for good.
    func forget(_ schedule: StoredSchedule.Key)
    /// A folder whose content does not survive a reboot.
    var runtimeDirectory: String { get }
}

/// A part of ``Wakes``, which outlives it.
protocol EventRoom: Room {
    var wakes: Wakes { get }
}

extension EventRoom {
    package var engine: Engine { wakes.engine }
    package var recorder: Recorder { wakes.recorder }
    package var host: any EventHost { wakes.host }
    package var sockets: ListeningSockets { wakes.sockets }
}
