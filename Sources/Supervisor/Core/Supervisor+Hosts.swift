// SPDX-License-Identifier: Apache-2.0

import Archives
package import Configuration
package import Engine
package import EventSources
import Lifecycle
package import Linux
package import Mailbox
import MemoryPressure
import Notify
import Processes
package import Schedules
package import Store

extension Supervisor: EventHost {
    package func add(_ mail: MailDraft, for app: AppRuntime) throws(Mailbox.Refusal) {
        var mail = mail
        mail.isOwnEvent = true
        try mailboxes.add(mail, for: app)
    }
    package func deliverMail(to app: AppRuntime) { mailboxes.deliver(to: app) }
    package func retryMail(of app: AppRuntime) { mailboxes.retry(app) }
    package func mail(for app: AppRuntime) -> [Mail] { mailboxes.waiting(for: app) }
    package func acknowledged(_ mail: Int64, by app: AppRuntime) { mailboxes.acknowledged(mail, by: app) }
    package var clocks: ClockPair { ClockPair(running: Clock.boot(), wall: Clock.realtimeMicroseconds()) }
    package var isBeforeFirstUnlock: Bool { interruptions.isBeforeFirstUnlock }
    package var isMemoryShort: Bool { memoryWatch.isShort }
    package var isMemoryAwaited: Bool { !memoryWatch.admission.isEmpty }
    package var socketAccounts: SocketAccounts {
        get { inForce.accounts.sockets }
        set { inForce.accounts.sockets = newValue }
    }
    package var leftApps: Set<String> { Set(keeper.leftOver.map(\.app)) }
    package func isLeft(_ removed: String, ofUserOf app: AppRuntime) -> Bool {
        guard let process = keeper.leftOver.first(where: { $0.app == removed }) else { return false }
        return (try? ProcFS.realUser(process.pid)) == processes.owner(app.name) ?? Users.effectiveUID
    }
    package var gpsdUser: UInt32? { inForce.accounts.gpsd }
    package var gpsd: GPSAddress { configuration.supervisor.gpsd }
    package var sessionSound: (any SoundSource)? { desktop.sound }
    package var lookups: BackgroundWorker { launcher.reads }
    package func keep(_ schedule: StoredSchedule) { store.save(schedule) }
    package func forget(_ schedule: StoredSchedule.Key) { store.remove(schedule) }
    package var runtimeDirectory: String { runtime.path }
}

extension Supervisor: MemoryHost {
    var memoryRules: MemorySpecification { configuration.supervisor.memory }
    package var cgroup: String? { place.cgroups?.base }
    func memoryPressure(from: MemoryLevel, to: MemoryLevel) { policyManager?.pressure(from: from, to: to) }
    func memoryIsEnough() { wakes.connectionWatch.memoryIsEnough() }
    var evictionPolicy: String? { policyManager?.evictionPolicy }
    package func evictionOrder(_ completion: @escaping ([(app: AppRuntime, policy: String, reason: String)]) -> Void) {
        guard let policyManager else { return completion([]) }
        policyManager.evictionOrder(completion)
    }
    func hearsByChannel(_ app: AppID) -> Bool { appSockets.hearsByChannel(app) }
    func letGo(of entry: FDStore.Entry, _ app: AppRuntime) { notifySockets.letGo(of: entry, app) }
}

extension Supervisor: ArchiveHost {
    var stateFolder: String { runtime.state }
    func isScene(named name: String) -> Bool { innerScenes.scene(named: name) != nil }
    func sceneNames(of app: AppRuntime) -> [String] {
        app.specification.innerScenes == nil ? [] : innerScenes.sessions(of: app).map(\.name)
    }
    func userID(of app: AppRuntime) -> UInt32? { launcher.userID(of: app) }
    package func user(of app: AppRuntime) throws(LaunchError) -> User? { try launcher.identity(of: app) }
    func runCommand(
        _ app: AppRuntime,
        _ command: [String],
        output: Descriptor,
        started: @escaping (Descriptor) -> Void,
        completion: @escaping (Result<ExitStatus, LaunchError>) -> Void
    ) {
        launcher.runCommand(app, command, output: output, started: started, completion: completion)
    }
}

extension Supervisor: ActivityHost {
    func isInForeground(_ app: AppRuntime) -> Bool { alerts.isInForeground(app) }
}

extension Supervisor: MailHost {
    func whenLoaded(_ body: @escaping () -> Void) { persistence.whenLoaded(body) }

    @discardableResult
    func wake(_ app: AppRuntime, _ event: WakeEvent) -> WakeOutcome { wakes.wake(app, event) }
    func wake(_ app: AppRuntime, for mail: Mail) -> WakeOutcome { wakes.wake(app, for: mail) }
    func channel(of app: AppRuntime) -> AppChannel { appSockets.channel(of: app) }
    func run(
        _ command: HookCommand,
        named name: String,
        of app: AppRuntime,
        _ completion: @escaping (String?) -> Void
    ) -> HookRun {
        launcher.run(command, named: name, of: app, completion)
    }
    func end(_ run: HookRun, of app: AppRuntime) { launcher.cancel(run, of: app) }
    func pumpMessages(to app: AppRuntime) { appSockets.pump(app) }
    func toldOfSettings(_ mail: Mail, _ app: AppRuntime) { settings.told(mail, app) }
}
