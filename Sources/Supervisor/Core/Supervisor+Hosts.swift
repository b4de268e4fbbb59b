// SPDX-License-Identifier: Apache-2.0

import Configuration
import Lifecycle
import Linux
import Mailbox
import Notify
import Processes

extension Supervisor: EventHost {
    func add(_ mail: MailDraft, for app: AppRuntime) throws(Mailbox.Refusal) { try mailboxes.add(mail, for: app) }
    func deliverMail(to app: AppRuntime) { mailboxes.deliver(to: app) }
    func retryMail(of app: AppRuntime) { mailboxes.retry(app) }
    func mail(for app: AppRuntime) -> [Mail] { mailboxes.waiting(for: app) }
    func acknowledged(_ mail: Int64, by app: AppRuntime) { mailboxes.acknowledged(mail, by: app) }
    var isBeforeFirstUnlock: Bool { interruptions.isBeforeFirstUnlock }
    var isMemoryShort: Bool { memoryWatch.isShort }
    var isMemoryAwaited: Bool { !memoryWatch.admission.isEmpty }
    var socketAccounts: SocketAccounts {
        get { inForce.accounts.sockets }
        set { inForce.accounts.sockets = newValue }
    }
    var gpsdUser: UInt32? { inForce.accounts.gpsd }
    var gpsd: GPSAddress { configuration.supervisor.gpsd }
    var lookups: SideWork { launcher.reads }
    var runtimeDirectory: String { runtime.path }
}

extension Supervisor: MemoryHost {
    var memoryRules: MemorySpecification { configuration.supervisor.memory }
    var cgroup: String? { place.cgroups?.base }
    func memoryPressure(from: MemoryLevel, to: MemoryLevel) { governance?.pressure(from: from, to: to) }
    func memoryIsEnough() { wakes.connectionWatch.memoryIsEnough() }
    var evictionPolicy: String? { governance?.evictionPolicy }
    func evictionOrder(_ completion: @escaping ([(app: AppRuntime, policy: String, reason: String)]) -> Void) {
        guard let governance else { return completion([]) }
        governance.evictionOrder(completion)
    }
    func hearsByChannel(_ app: AppID) -> Bool { appSockets.hearsByChannel(app) }
    func letGo(of entry: FDStore.Entry, _ app: AppRuntime) { notifySockets.letGo(of: entry, app) }
}

extension Supervisor: ArchiveHost {
    var stateFolder: String { runtime.state }
    func userID(of app: AppRuntime) -> UInt32? { launcher.userID(of: app) }
    func user(of app: AppRuntime) throws(LaunchTrouble) -> User? { try launcher.identity(of: app) }
    func runCommand(
        _ app: AppRuntime,
        _ command: [String],
        output: Descriptor,
        started: @escaping (Descriptor) -> Void,
        completion: @escaping (Result<ExitStatus, LaunchTrouble>) -> Void
    ) {
        launcher.runCommand(app, command, output: output, started: started, completion: completion)
    }
}
