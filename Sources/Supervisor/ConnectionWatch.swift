import Configuration
import EventLoop
import Lifecycle
import Linux
import Processes

/// Connections to apps that open their sockets themselves (`wake_on_connect`), and data on their connections (the
/// background mode `voip`), while they are suspended.
final class ConnectionWatch: EventSource {
    unowned let supervisor: Supervisor
    let poll: SocketPoll
    private var sleeping: [AppID: SleepingSockets] = [:]
    private var leftBehind: [AppID: LeftBehind] = [:]
    private var serving: [AppID: ServingApp] = [:]
    /// Apps of which it was said that their sockets cannot be copied.
    private var told: Set<AppID> = []

    init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        poll = SocketPoll(supervisor.loop)
    }

    func configure() { for app in supervisor.apps { touched(app) } }

    func touched(_ app: AppRuntime) {
        let wish = ConnectionWish(app.specification)
        if wish.isNothing, sleeping[app.id] == nil, serving[app.id] == nil { return }
        if let one = serving[app.id], !one.goesOn { serving[app.id] = nil }
        let machine = supervisor.coordinator.machine(app.id)
        guard machine.state == .suspended, machine.transition == nil, !wish.isNothing, let tree = app.tree else {
            sleeping.removeValue(forKey: app.id)?.close()
            serving[app.id]?.look()
            return
        }
        if let one = sleeping[app.id] {
            if one.tree === tree, one.wish == wish { return one.retry() }
            one.close()
        }
        let one = SleepingSockets(app, tree, wish, self)
        sleeping[app.id] = one
        // Whoever asked for the sleep hears that it began, also where something waits that ends it at once.
        supervisor.loop.later { [weak one] in one?.find() }
    }

    func forget(_ app: AppRuntime) {
        sleeping.removeValue(forKey: app.id)?.close()
        leftBehind[app.id] = nil
        serving[app.id] = nil
        told.remove(app.id)
    }

    /// Wakes an app, and sees to it that it has the time to answer.
    func wake(_ app: AppRuntime, _ event: WakeEvent, isIncoming: Bool) -> WakeOutcome {
        let one = isIncoming && event.wake?.foreground == false ? app.tree.map { ServingApp(app, $0, supervisor) } : nil
        serving[app.id] = one
        // It has no mail, which alone may be refused.
        let outcome = (try? supervisor.wakes.happened(event, for: app)) ?? .runs
        if case .heldBack = outcome { serving[app.id] = nil }
        return outcome
    }

    /// How long what waits at these sockets waits on, when a sleep begins.
    func leftBehind(by app: AppID, _ sockets: [UInt32]) -> [UInt32: Duration] {
        guard !sockets.isEmpty else {
            leftBehind[app] = nil
            return [:]
        }
        return leftBehind[app, default: LeftBehind()].fellAsleep(sockets)
    }

    /// Says once why an app's sockets are only looked at now and then.
    func cannotCopy(_ app: AppRuntime, _ error: Errno) {
        guard told.insert(app.id).inserted else { return }
        let reason =
            error == .tooManyOpenFiles || error == .tooManyOpenFilesInSystem
            ? "it has too many" : "they cannot be copied (\(error); ‘torpor doctor’ says more)"
        supervisor.log.info("\(app.name): while it is suspended its sockets are looked at twice a second: \(reason)")
    }
}
