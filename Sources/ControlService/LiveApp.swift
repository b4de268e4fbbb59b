// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Processes
import Supervisor
import TorporAPI

/// The time of a list, and the parts of torpord that it asks of each app.
final class Listing {
    fileprivate let service: ControlService
    fileprivate let now: Duration
    fileprivate let supervisor: Supervisor
    fileprivate let coordinator: Coordinator
    fileprivate let sockets: ListeningSockets
    fileprivate let connections: ConnectionWatch
    fileprivate let alerts: AppAlerts
    fileprivate let protection: ProtectedData

    init(_ service: ControlService) {
        let supervisor = service.supervisor
        self.service = service
        self.supervisor = supervisor
        now = service.loop.now
        coordinator = service.coordinator
        sockets = supervisor.wakes.sockets
        connections = supervisor.wakes.connectionWatch
        alerts = supervisor.alerts
        protection = supervisor.protection
    }
}

/// An app in a list, which reads what it says of the app where torpord stores it. Most apps lack most of it, so the
/// cheapest question comes first everywhere.
struct LiveApp: ListedApp {
    private let app: AppRuntime
    private let listing: Listing
    private let run: Incarnation
    private let tree: ProcessTree?
    private let outline: AppOutline
    private let presented: Shared<AppPresentation>?
    private let programAfterStop: String?

    init(_ app: AppRuntime, _ listing: Listing) {
        self.app = app
        self.listing = listing
        run = app.run
        tree = run.tree
        outline = listing.coordinator[app.id].outline
        presented = app.specification.presented
        programAfterStop = app.programAfterStop
    }

    var name: String { app.name }
    var state: String { outline.state.rawValue }
    var transition: String? { outline.transition?.rawValue }
    var goal: String { outline.goal.rawValue }
    var pid: Int32? { programAfterStop == nil ? tree?.main.pid : nil }
    var incarnation: Int64? { outline.incarnation == 0 ? nil : Int64(outline.incarnation) }
    var restarts: Int64 { Int64(outline.restarts) }
    var failed: Bool { outline.failed }
    var done: Bool { outline.isDone }
    var working: Bool { outline.isWorking }
    var stranded: Bool { listing.service.isStranded(app) }

    // MARK: The run

    var uptime: Double? { tree == nil ? nil : run.launchedAt.map { (listing.now - $0).inSeconds } }
    var memoryBytes: Int64? { tree == nil ? nil : Int64(clamping: run.usage.memoryBytes) }
    var cpuSeconds: Double? { tree == nil ? nil : run.usage.processorTime.inSeconds }
    var status: String? { run.statusText }
    var lastExit: LastExit? { app.lastExit }
    var holds: [String] { outline.isHeld ? listing.coordinator.machine(app.id).holders : [] }

    var nextRestartMilliseconds: Int64? {
        outline.restartsAt.map { max(0, ($0 - listing.now).microseconds / 1000) }
    }

    // MARK: What is wrong

    var socketTrouble: String? { listing.sockets.trouble(of: app) ?? silence }

    var unhealthy: String? {
        listing.service.outsideStop(of: app) ?? run.health?.problem ?? listing.supervisor.trouble(of: app, outline)
    }

    var heldBack: String? {
        if let programAfterStop { return "it has ended, and its after_stop command \(programAfterStop) runs" }
        guard outline.isWaitingForPermission || listing.protection.isStopped(app) else { return nil }
        return app.heldBack ?? listing.service.blocked(app)
    }

    /// Why no connection wakes a suspended app although `wake_on_connect` says so, or why no data does although nothing
    /// else wakes it than its mode `voip`, as words that follow its name; nil if they do, or are not to.
    private var silence: String? {
        let listensNowhere = listing.connections.listensNowhere(app)
        guard listensNowhere || listing.connections.isUnconnected(app) else { return nil }
        let returns = "‘torpor resume \(app.name)’ brings it back"
        if listensNowhere {
            return "is suspended and listens on no port, so no connection wakes it (wake_on_connect): \(returns)"
        }
        guard app.specification.isWokenOnlyByVoip else { return nil }
        return "is suspended and has no connection, so no data wakes it (voip): \(returns)"
    }

    // MARK: The configuration

    var title: String? { presented?.value.title }
    var titles: [String: String] { presented?.value.titles ?? [:] }
    var summary: String? { presented?.value.summary }
    var summaries: [String: String] { presented?.value.summaries ?? [:] }
    var icon: String? { presented?.value.icon }
    var icons: [String: String] { presented?.value.icons ?? [:] }
    var categories: [String] { presented?.value.categories ?? [] }
    var language: String? { presented?.value.language }
    var tags: [String] { app.specification.tags }
    var scene: String? { app.specification.scene }
    var template: String? { app.specification.scene == nil ? nil : app.specification.template }
    var isSandboxed: Bool { app.specification.isSandboxed }

    // MARK: What other parts store

    var pictureAt: Int64? { app.pictureAt }

    var badge: Int64? {
        let badge = listing.alerts.badge(of: app)
        return badge == 0 ? nil : badge
    }

    var owner: String? { ControlService.owner(outline) }

    var ownedMilliseconds: Int64? {
        outline.ownedUntil.map { max(0, ($0 - listing.now).microseconds / 1000) }
    }

    var scenesInside: SceneCount? {
        guard app.specification.innerScenes != nil else { return nil }
        let scenes = listing.supervisor.innerScenes
        return SceneCount(sessions: Int64(scenes.count(of: app)), live: Int64(scenes.liveCount(of: app)))
    }
}
