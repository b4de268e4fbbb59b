// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import Lifecycle
import Linux
package import Mailbox
package import Schedules
package import Store

/// What event sources use from the rest of the supervisor.
package protocol EventHost: DescriptorKeeping {
    /// Adds a message to an app's mailbox.
    ///
    /// - Throws: ``Mailbox/Refusal`` if the mailbox is full.
    func add(_ mail: MailDraft, for app: AppRuntime) throws(Mailbox.Refusal)
    /// Delivers the app's queued messages, if the app can get messages now.
    func deliverMail(to app: AppRuntime)
    /// Tries again to wake the app for messages that are already in its mailbox.
    func retryMail(of app: AppRuntime)
    /// The app's queued messages.
    func mail(for app: AppRuntime) -> [Mail]
    /// Removes from the app's mailbox a message that the app no longer needs.
    func acknowledged(_ mail: Int64, by app: AppRuntime)

    /// The clocks that timers use.
    var clocks: ClockPair { get }
    /// Whether the user has not yet unlocked the session since the boot.
    var isBeforeFirstUnlock: Bool { get }
    /// Whether memory is short.
    var isMemoryShort: Bool { get }
    /// Whether launches wait until memory is no longer short.
    var isMemoryAwaited: Bool { get }
    /// Whether torpor-keeper has died. Without it, no app can be launched.
    var isKeeperLost: Bool { get }

    /// The users and groups that own apps' socket files, as far as their lookup has succeeded.
    var socketAccounts: SocketAccounts { get set }
    /// The apps of which an earlier torpord has left processes.
    var leftApps: Set<String> { get }
    /// Whether the processes that an earlier torpord has left of a removed app run as the user of `app`. False if no
    /// such process is left, because their user is then unknown.
    func isLeft(_ removed: String, ofUserOf app: AppRuntime) -> Bool
    /// A user whose gpsd is trusted, in addition to root and torpord's own user; nil for none.
    var gpsdUser: UInt32? { get }
    /// The address of gpsd.
    var gpsd: GPSAddress { get }
    /// The sound server of the user's session; nil if there is none.
    var sessionSound: (any SoundSource)? { get }
    /// A worker for reads that may block on a disk or on a network service.
    var lookups: BackgroundWorker { get }
    /// Stores the state of a timer, or of an app's fetches, on disk.
    func keep(_ schedule: StoredSchedule)
    /// Deletes the stored state of a timer that was removed for good.
    func forget(_ schedule: StoredSchedule.Key)
    /// The directory for files that need not survive a reboot.
    var runtimeDirectory: String { get }
}

/// A part of ``Wakes``. It uses the engine, the recorder and the host of `wakes`, which outlives it.
protocol EventRoom: Room {
    var wakes: Wakes { get }
}

extension EventRoom {
    package var engine: Engine { wakes.engine }
    package var recorder: Recorder { wakes.recorder }
    package var host: any EventHost { wakes.host }
    package var sockets: ListeningSockets { wakes.sockets }
}
