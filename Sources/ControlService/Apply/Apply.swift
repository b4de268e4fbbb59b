// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Lifecycle
import Supervisor
import TorporAPI

/// One apply of a configuration: the request, the differences between the old and the new configuration, and the texts
/// about them for the reply and the log.
struct Apply {
    let request: ApplyRequest
    let new: TorporConfiguration
    let diff: ConfigurationDiff
    private let old: TorporConfiguration
    /// The running apps that could not be launched again, each with the reason. They are not restarted, even if the
    /// request wants a restart.
    let obstacles: [String: String]

    /// - Parameters:
    ///   - outdated: the names of the apps that an earlier torpord launched with an older configuration than `old`.
    ///   - launchOnly: the names of the apps among `outdated` that have all values of `new` that need a restart.
    ///   - takenBack: the names of the apps among `outdated` that were launched with the same launch settings as those
    ///     in `new`. The apply brings these apps up to date without a restart.
    ///   - environments: the names of the running apps whose `environment_file` has changed since their launch.
    ///   - obstacles: why apps could not be launched with `new`, by name. If such an app runs, it is not restarted.
    init(
        _ request: ApplyRequest,
        from old: TorporConfiguration,
        to new: TorporConfiguration,
        outdated: Set<String> = [],
        launchOnly: Set<String> = [],
        takenBack: Set<String> = [],
        environments: Set<String> = [],
        obstacles: [String: String] = [:]
    ) {
        self.request = request
        self.obstacles = obstacles
        self.old = old
        self.new = new
        var diff = ConfigurationDiff(old, new)
        for index in diff.apps.indices where takenBack.contains(diff.apps[index].name) {
            diff.apps[index].changes = diff.apps[index].changes.map {
                KeyChange(key: $0.key, old: $0.old, new: $0.new, effect: .live)
            }
        }
        // What differs from the configuration applied last may be as it was when the app was launched.
        let launchOnly = launchOnly.intersection(outdated).subtracting(takenBack)
        for index in diff.apps.indices where launchOnly.contains(diff.apps[index].name) {
            diff.apps[index].changes = diff.apps[index].changes.map {
                KeyChange(key: $0.key, old: $0.old, new: $0.new, effect: $0.effect == .restart ? .launch : $0.effect)
            }
        }
        for app in new.apps where outdated.contains(app.name) && !takenBack.contains(app.name) {
            let effect = launchOnly.contains(app.name) ? KeyEffect.launch : .restart
            diff.add(KeyChange(key: Self.unknownKey, old: nil, new: nil, effect: effect), to: app.name)
        }
        for app in new.apps where environments.contains(app.name) {
            let name = "environment_file"
            let isNamed = diff.apps.contains { $0.name == app.name && $0.changes.contains { $0.key == name } }
            guard !isNamed, !app.environmentFiles.isEmpty else { continue }
            diff.add(
                KeyChange(key: name, old: "as at its launch", new: Self.changedSince, effect: .restart),
                to: app.name
            )
        }
        // In the diff, count a scene as removed if its template was removed, and as added if its template was added
        // again.
        let before = Dictionary(old.apps.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
        let after = Dictionary(new.apps.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
        for index in diff.apps.indices {
            let name = diff.apps[index].name
            guard let was = before[name], let now = after[name], was.lacksTemplate != now.lacksTemplate else {
                continue
            }
            diff.apps[index].kind = now.lacksTemplate ? .removed : .added
            diff.apps[index].changes = []
        }
        self.diff = diff
        // Look names up in dictionaries: a template may have ten thousand scenes, and a search through all of them for
        // each would take long.
        for change in diff.apps {
            guard let scene = after[change.name] ?? before[change.name], scene.scene != nil else { continue }
            scenes[change.name] = Self.change(
                after[change.name],
                from: before[scene.template]?.innerScenes != nil,
                to: after[scene.template]?.innerScenes != nil
            )
        }
        templates = Self.templates(old.templates, new.templates, inside: new.apps.filter { $0.innerScenes != nil })
    }

    /// What the apply does to each template. The template's scenes are not included.
    private let templates: [AppliedApp]

    private static func templates(
        _ old: [AppSpecification],
        _ new: [AppSpecification],
        inside: [AppSpecification]
    ) -> [AppliedApp] {
        let before = Set(old.map(\.name))
        let after = Set(new.map(\.name))
        return new.filter { !before.contains($0.name) }.map {
            AppliedApp(
                app: $0.name,
                kind: "added",
                message: "is a template: ‘torpor scene open \($0.name)@NAME’ makes scenes"
            )
        }
            + old.filter { !after.contains($0.name) }.map { template in
                AppliedApp(
                    app: template.name,
                    kind: "removed",
                    message: inside.contains { $0.name == template.name }
                        ? "is no longer a template: its scenes are inside it"
                        : "is no longer a template: sessions of its scenes are kept for 30 days"
                )
            }
    }

    /// Replaces, in the diff, the names of keys that changed after the app was launched, while an earlier torpord ran.
    /// The app still has the old values, and this torpord does not know which keys have changed.
    static let unknownKey = AppliedApp.unknownKey

    /// How a change of the template affects a scene that has its own processes.
    enum SceneChange {
        case losesTemplate
        case regainsTemplate
        /// The template becomes an app that has its scenes inside its own processes.
        case movesInside
        /// The app in whose processes the scene lived becomes a template.
        case movesOut
    }

    /// How the apply changes scenes, by the scene's full name.
    private(set) var scenes: [String: SceneChange] = [:]

    /// How the apply changes a scene; nil if the scene is gone and does not move into its app.
    ///
    /// - Parameters:
    ///   - now: the scene's new specification; nil if there is none.
    ///   - wasInside: whether the old app with the template's name had its scenes inside its own processes.
    ///   - isInside: whether the new app with the template's name has its scenes inside its own processes.
    private static func change(
        _ now: AppSpecification?,
        from wasInside: Bool,
        to isInside: Bool
    ) -> SceneChange? {
        guard let now else { return isInside ? .movesInside : nil }
        if now.lacksTemplate { return .losesTemplate }
        return wasInside ? .movesOut : .regainsTemplate
    }

    /// What apps that are removed lose with it, by name: `2 settings and saved state (5 B)`. Apps that have
    /// nothing are left out.
    var belongings: [String: String] = [:]

    /// The changes, by app and key, that an earlier apply brought, and that still wait for the app's next launch.
    private(set) var pending: [String: Set<String>] = [:]

    /// Finds out which changes are ``pending``: those in which the configuration applied last is as the new one.
    mutating func notePending(since last: TorporConfiguration) {
        let waiting = diff.apps.filter { $0.kind == .changed && $0.changes.contains { $0.effect != .live } }
        guard !waiting.isEmpty else { return }
        let names = Set(waiting.map(\.name))
        let before = Dictionary(
            last.apps.filter { names.contains($0.name) }.map { ($0.name, $0) },
            uniquingKeysWith: { $1 }
        )
        let after = Dictionary(
            new.apps.filter { names.contains($0.name) }.map { ($0.name, $0) },
            uniquingKeysWith: { $1 }
        )
        for app in waiting {
            guard let was = before[app.name], let now = after[app.name] else { continue }
            let fresh = Set(was == now ? [] : ConfigurationDiff.changes(was, now).map(\.key))
            pending[app.name] = Set(
                app.changes.filter {
                    $0.effect != .live && !fresh.contains($0.key) && $0.key != Self.unknownKey
                        && $0.new != Self.changedSince
                }.map(\.key)
            )
        }
    }

    /// The new value of `environment_file` in a diff, if the configuration is the same and the files are not.
    private static let changedSince = "changed since"

    /// What the apply does to one app.
    struct Entry {
        var name: String
        var id: AppID
        /// What changes in the app's configuration; nil if the app is only restarted because an app that it requires
        /// is restarted.
        var change: ConfigurationDiff.App?
        /// If the app is restarted only because an app that it requires is restarted: the name of that app; otherwise
        /// nil.
        var cause: String?
        /// How the apply changes the scene; nil if the app is not a scene.
        var scene: SceneChange?
        /// Whether the app was running, or being launched, when the apply began.
        var isAlive = false
        /// Whether the app had gone down when the apply began (``AppMachine/isDown``).
        var isDown = false
        /// Whether the app is terminated and launched again with its new definition, or launched if it had gone down.
        var isReplaced = false
        /// The keys whose changes an earlier apply brought, as in ``Apply/pending``.
        var pending: Set<String> = []
        /// What the app loses if it is removed, as in ``Apply/belongings``.
        var belongings: String?
        /// Why the running app is not restarted although the request wants it; otherwise nil.
        var obstacle: String?
        var launch: LaunchMode = .onDemand
        /// Why torpord does not launch a new app whose `launch` is not `on-demand`; nil if torpord launches it.
        var leftAlone: String?
        /// The app's incarnation (launch number) when the apply began. A restart terminates this incarnation.
        var incarnation: UInt32?

        /// Whether `torpor apply --restart` restarts or launches the app after a change that takes effect only at a
        /// launch.
        var mayBeReplaced: Bool { isAlive || (isDown && launch != .onDemand) }

        /// Whether this apply brings the app nothing new, and does nothing to it.
        var isAsBefore: Bool {
            guard let change, change.kind == .changed, !isReplaced, obstacle == nil, scene == nil else { return false }
            return change.changes.allSatisfy { pending.contains($0.key) }
        }

        /// Whether the apply may have bound other sockets for the app.
        var hasNewSockets: Bool {
            guard let change, change.kind != .removed else { return false }
            return change.kind == .added || change.changes.contains { $0.key.hasPrefix("sockets") }
        }
    }

    // MARK: Which apps

    /// The names of the apps that the request selects; all apps if it selects none. Throws if a name matches no app.
    func chosen() throws(Selection.Unknown) -> Set<String> {
        let names = Set(new.apps.map(\.name))
        let all = new.apps + old.apps.filter { !names.contains($0.name) }
        guard !request.apps.isEmpty else { return Set(all.map(\.name)) }
        var chosen: Set<String> = []
        for pattern in request.apps {
            let matches = all.filter { Self.fits($0, pattern) }
            guard !matches.isEmpty else {
                throw Selection.Unknown(name: pattern, nearest: Selection.nearest(pattern, among: all))
            }
            chosen.formUnion(matches.map(\.name))
        }
        return chosen
    }

    private static func fits(_ app: AppSpecification, _ pattern: String) -> Bool {
        if pattern.hasPrefix("tag:") { return app.tags.contains(String(pattern.dropFirst(4))) }
        if pattern.contains("*") || pattern.contains("?") {
            return Selection.matches(Array(app.name.utf8)[...], Array(pattern.utf8)[...])
        }
        return app.name == pattern || (app.template == pattern && app.isOneOfTemplate)
    }

    /// Whether the apply restarts the app, because the new definition requires this and the request allows it.
    func isReplaced(_ name: String, _ chosen: Set<String>) -> Bool {
        request.restart && chosen.contains(name) && obstacles[name] == nil
            && diff.apps.contains { $0.name == name && $0.needsRestart }
    }

    // MARK: Replies

    /// The reply to a request that only asks what an apply would change. `living`: the names of the running apps.
    /// `down`: the names of the apps that have gone down (``AppMachine/isDown``).
    func preview(_ chosen: Set<String>, living: Set<String>, down: Set<String>) -> ApplyReply {
        let shown = diff.apps.filter { chosen.contains($0.name) }
        return ApplyReply(
            apps: templates
                + shown.map { change in
                    var entry = Entry(name: change.name, id: 0, change: change)
                    entry.launch = new.apps.first { $0.name == change.name }?.launch ?? .onDemand
                    entry.isAlive = living.contains(change.name)
                    entry.isDown = down.contains(change.name)
                    entry.isReplaced = isReplaced(change.name, chosen) && entry.mayBeReplaced
                    entry.scene = scenes[change.name]
                    entry.belongings = belongings[change.name]
                    return entry.applied(message: entry.preview)
                },
            supervisor: diff.supervisor.map(KeyChangeInfo.init),
            warnings: new.warnings.map(DiagnosticInfo.init)
        )
    }

    /// The reply after an apply, with a result for each app in `entries`.
    func reply(_ entries: [Entry], _ results: [VerbResult], isWaiting: Bool) -> ApplyReply {
        ApplyReply(
            apps: templates
                + zip(entries, results).map { entry, result in
                    var applied = entry.applied(message: entry.text(isWaiting: isWaiting && result.ok))
                    applied.state = result.state
                    applied.pid = result.pid
                    applied.ok = result.ok
                    applied.error = result.error
                    if !result.ok, entry.obstacle == nil {
                        var reason = result.message ?? ""
                        if reason.hasPrefix(entry.name + " ") { reason.removeFirst(entry.name.count + 1) }
                        applied.message += ", but it \(reason)"
                    }
                    return applied
                },
            supervisor: diff.supervisor.map(KeyChangeInfo.init),
            warnings: new.warnings.map(DiagnosticInfo.init)
        )
    }
}

extension KeyChangeInfo {
    init(_ change: KeyChange) {
        self.init(key: change.key, old: change.old, new: change.new, effect: change.effect.rawValue)
    }
}

extension DiagnosticInfo {
    init(_ diagnostic: Diagnostic) {
        self.init(
            file: diagnostic.file,
            line: Int64(diagnostic.line),
            column: Int64(diagnostic.column),
            path: diagnostic.path,
            message: diagnostic.message,
            severity: diagnostic.severity.rawValue
        )
    }
}
