// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// What a list says of one app; ``AppSummary`` describes each value. torpord lists apps that read their values where
/// it stores them, so that it need not copy all values of every app first.
public protocol ListedApp {
    var name: String { get }
    var state: String { get }
    var transition: String? { get }
    var goal: String { get }
    var pid: Int32? { get }
    var incarnation: Int64? { get }
    var uptime: Double? { get }
    var restarts: Int64 { get }
    var failed: Bool { get }
    var memoryBytes: Int64? { get }
    var cpuSeconds: Double? { get }
    var status: String? { get }
    var lastExit: LastExit? { get }
    var holds: [String] { get }
    var nextRestartMilliseconds: Int64? { get }
    var stranded: Bool { get }
    var done: Bool { get }
    var working: Bool { get }
    var socketTrouble: String? { get }
    var unhealthy: String? { get }
    var heldBack: String? { get }
    var tags: [String] { get }
    var title: String? { get }
    var titles: [String: String] { get }
    var summary: String? { get }
    var summaries: [String: String] { get }
    var icon: String? { get }
    var icons: [String: String] { get }
    var categories: [String] { get }
    var language: String? { get }
    var template: String? { get }
    var scene: String? { get }
    var pictureAt: Int64? { get }
    var badge: Int64? { get }
    var owner: String? { get }
    var ownedMilliseconds: Int64? { get }
    var scenesInside: SceneCount? { get }
    var isSandboxed: Bool { get }
}

extension ListedApp {
    /// Appends the JSON object as text.
    @inlinable
    public func append(to writer: inout JSONWriter) { writer.appendObject { addMembers(to: &$0) } }

    // This and what it calls is inlinable: by way of protocols, it would take much longer for each app of a list.
    @inlinable
    func addMembers(to members: inout some JSONMembers & ~Copyable) {
        members.add("name", name)
        members.add("state", state)
        members.add("transition", transition)
        members.add("goal", goal)
        members.add("pid", pid.map { Int64($0) })
        members.add("incarnation", incarnation)
        members.add("uptime_s", uptime)
        members.add("restarts", restarts)
        members.add("failed", failed)
        members.add("memory_bytes", memoryBytes)
        members.add("cpu_s", cpuSeconds)
        members.add("status", status)
        if let lastExit {
            members.add("last_exit") { lastExit.addMembers(to: &$0) }
        } else {
            members.add("last_exit", nil as String?)
        }
        members.add("holds", holds)
        members.add("next_restart_ms", nextRestartMilliseconds)
        members.add("stranded", stranded)
        members.add("done", done)
        members.add("working", working)
        members.add("socket_trouble", socketTrouble)
        members.add("unhealthy", unhealthy)
        members.add("held_back", heldBack)
        members.add("tags", tags)
        members.add("title", title)
        members.add("titles", titles)
        members.add("summary", summary)
        members.add("summaries", summaries)
        members.add("icon", icon)
        members.add("icons", icons)
        members.add("categories", categories)
        members.add("language", language)
        members.add("template", template)
        members.add("scene", scene)
        members.add("picture_at", pictureAt)
        members.add("badge", badge)
        members.add("owner", owner)
        members.add("owned_ms", ownedMilliseconds)
        if let scenesInside {
            members.add("scenes") { scenesInside.addMembers(to: &$0) }
        } else {
            members.add("scenes", nil as String?)
        }
        members.add("sandboxed", isSandboxed)
    }
}

extension AppSummary: ListedApp {
    /// Copies what a list says of an app.
    public init(of app: some ListedApp) {
        self.init(
            name: app.name,
            state: app.state,
            transition: app.transition,
            goal: app.goal,
            pid: app.pid,
            incarnation: app.incarnation,
            uptime: app.uptime,
            restarts: app.restarts,
            failed: app.failed,
            memoryBytes: app.memoryBytes,
            cpuSeconds: app.cpuSeconds,
            status: app.status,
            lastExit: app.lastExit,
            holds: app.holds,
            nextRestartMilliseconds: app.nextRestartMilliseconds
        )
        (stranded, done, working) = (app.stranded, app.done, app.working)
        (socketTrouble, unhealthy, heldBack) = (app.socketTrouble, app.unhealthy, app.heldBack)
        (title, titles) = (app.title, app.titles)
        (summary, summaries) = (app.summary, app.summaries)
        (icon, icons) = (app.icon, app.icons)
        (categories, language, tags) = (app.categories, app.language, app.tags)
        (template, scene, pictureAt) = (app.template, app.scene, app.pictureAt)
        (badge, owner, ownedMilliseconds) = (app.badge, app.owner, app.ownedMilliseconds)
        (scenesInside, isSandboxed) = (app.scenesInside, app.isSandboxed)
    }
}
