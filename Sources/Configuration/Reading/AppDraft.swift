// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import WireText

/// An app as the configuration's tables define it, before the names of other apps are resolved and its instances are
/// created.
struct AppDraft {
    var specification: AppSpecification
    /// The number of instances (`instances`); nil if the key was not written.
    var instances: Int?
    /// The number of the first instance (`instance_first`); nil if the key was not written, which means 1.
    var firstInstance: Int?
    /// Whether the app answers the messages that it receives as signals (`answers`).
    var answers = false
    /// The value of `ready` as TOML. It may contain `%i`, so it is read again for each instance.
    var ready: (context: Context, node: Node)?
    /// The value of `health` as TOML. It may contain `%i`, so it is read again for each instance.
    var health: (context: Context, node: Node)?
    /// The value of `snapshot` as TOML. It may contain `%i`, so it is read again for each instance.
    var snapshot: (context: Context, node: Node)?
    /// The value of `sockets` as TOML. It may contain `%i`, so it is read again for each instance.
    var sockets: (context: Context, node: Node)?
    /// The tables `[defaults]` that apply to an app of a bundle. They override the bundle's manifest.
    var defaultTables: [(context: Context, node: Node)] = []
    /// The place where each key was written.
    var origins: [String: Origin] = [:]
    /// The place where the app's table begins.
    var origin: Origin

    init(name: String, origin: Origin) {
        specification = AppSpecification(name: name)
        self.origin = origin
    }

    /// Creates a draft that begins with the values of `[defaults]`.
    init(name: String, origin: Origin, defaults: AppDraft) {
        self = defaults
        specification.name = name
        specification.template = name
        self.origin = origin
    }

    /// Reads a table of the configuration, and stores its values in the draft.
    mutating func read(_ context: Context, _ node: Node) {
        let found = Read.table(context, node, AppKeys.all, into: &self)
        origins.merge(found) { _, new in new }
    }

    /// The values of `requires` and `after`. The app's own name, which may come from `[defaults]`, is removed.
    var dependencies: (requires: [String], after: [String]) {
        func names(_ key: String, _ names: [String]) -> [String] {
            guard !names.isEmpty, let origin = origins[key], origin.context.path.hasPrefix("defaults.") else {
                return names
            }
            return names.filter { $0 != specification.template }
        }
        return (names("requires", specification.requires), names("after", specification.after))
    }

    /// Reports an error about the value of a key. The error's place is that of the key, or the app's table if the key
    /// was not written.
    package func error(_ key: String, _ message: String) {
        (origins[key] ?? origin).error(message)
    }

    /// Reports that what the value of a key names is missing (``Origin/missing(_:)``).
    func missing(_ key: String, _ message: String) {
        (origins[key] ?? origin).missing(message)
    }

    /// Reports a warning about the value of a key. The warning's place is that of the key, or the app's table if the
    /// key was not written.
    func warning(_ key: String, _ message: String) {
        (origins[key] ?? origin).warning(message)
    }

    /// `; did you mean "…"?`, for an error or warning (``DiagnosticSink/hint(_:among:within:)``).
    func hint<Names: Sequence<String>>(
        _ text: String,
        among names: @autoclosure () -> Names,
        within most: Int = .max
    ) -> String {
        origin.context.sink.hint(text, among: names, within: most)
    }

    /// Makes the checks that compare several keys of the app.
    func check() {
        let rules = specification.rules
        if specification.exec.isEmpty, origins["exec"] == nil, specification.container == nil,
            specification.bundle == nil || specification.bundle?.version != nil
        {
            origin.error("exec is missing: write exec = [\"/path/to/program\"]")
        }
        if let problem = OpeningReader.problem(specification.exec, isOpenCommand: false) { error("exec", problem) }
        if rules.exitsOnSuspend, specification.launch == .background {
            error("launch", "an app with exits_on_suspend is launched only into the foreground")
        }
        if rules.backoff.cap < rules.backoff.initial {
            error("restart_backoff", "cap must not be shorter than initial")
        }
        if let needed = specification.memoryNeeded, let limit = specification.memoryLimit, needed > limit {
            error("memory_needed", "must not be more than memory_limit")
        }
        for (state, profile) in specification.resources.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            let high = profile.memoryHigh ?? .max
            if let low = profile.memoryLow, low > high {
                error("resources", "\(state.rawValue).memory_low must not be more than memory_high")
            }
            if let limit = specification.memoryLimit, high != .max, high > limit {
                warning("resources", "\(state.rawValue).memory_high is more than memory_limit, so it is never reached")
            }
        }
        if let time = specification.rules.taskTime, specification.rules.expiryWarning >= time,
            origins["expiry_warning"] != nil
        {
            error("expiry_warning", "must be shorter than task_time")
        }
        ContainerReader.check(self)
        SandboxReader.check(self)
        SceneReader.check(self)
        CoverReader.check(self)
        SettingReader.check(self)
        TransferReader.check(self)
        ProtectionReader.check(self)
        warnOfModes()
        let isOfForeground = specification.location.updates == .foreground
        let location = origins["location"] == nil || isOfForeground ? "regions" : "location"
        if origins[location] != nil, !specification.backgroundModes.contains(.location) {
            warning(location, "does nothing without background_modes = [\"location\"]")
        }
        if origins["networks"] != nil, !specification.backgroundModes.contains(.location) {
            warning("networks", "does nothing without background_modes = [\"location\"]")
        }
        if !specification.bluetooth.isEmpty, !specification.backgroundModes.contains(.bluetoothCentral) {
            warning("bluetooth", "does nothing without background_modes = [\"bluetooth-central\"]")
        }
        if rules.exitsOnSuspend, snapshot != nil {
            warning("snapshot", "is never taken of an app with exits_on_suspend: it does not enter the background")
        }
        if specification.data.firstLaunch != nil, !specification.data.isWanted {
            warning("first_launch", "does nothing without data_folders = true")
        }
        if origins["instances"] == nil, firstInstance != nil {
            warning("instance_first", "does nothing without instances")
        }
        if let instances, specification.scenes == nil {
            let last = AppName.instance(specification.template, (firstInstance ?? 1) + max(1, instances) - 1)
            if last.utf8.count > AppName.longest {
                error(
                    "instances",
                    "the name of the last instance, \(quoted(last)), has \(last.utf8.count) characters, "
                        + "more than \(AppName.longest): shorten the app's name"
                )
            }
        }
        if let variable = ["LANG", "LANGUAGE"].first(where: { specification.environment[$0] != nil }),
            specification.presentation.language != nil
        {
            warning("environment", "has \(variable), which language replaces: leave one of the two out")
        }
        if answers, specification.signals.isEmpty {
            warning("answers", "does nothing without signals")
        }
        if rules.owner == .external { warnOfOwner() }
        if rules.isOneshot, rules.watchdog != nil {
            warning("watchdog", "a oneshot app has no heartbeat once it is done")
        }
        if rules.isOneshot { warnOfLastingPaths() }
    }

    /// Warns of files whose existence launches a oneshot app again each time that it has ended. A job that names such a
    /// file in its command probably removes it. Patterns are meant for spools, whose files a job takes away.
    private func warnOfLastingPaths() {
        for trigger in specification.paths where trigger.condition == .exists && trigger.wake != .none {
            let isPattern = trigger.path.utf8.contains { "*?[".utf8.contains($0) }
            guard !isPattern, !specification.exec.contains(where: { $0.contains(trigger.path) }) else { continue }
            warning(
                "paths",
                "while \(quoted(trigger.path)) exists, this oneshot app runs again each time it has ended: if it does not "
                    + "remove the file, write changed instead of exists"
            )
        }
    }

    /// Warns of keys that have no effect, or an unexpected effect, together with `owner = "external"`.
    private func warnOfOwner() {
        if specification.wakeOnConnect != .none {
            warning(
                "wake_on_connect",
                "a standby keeps listening at ports that it has opened itself, and its clients wait without an answer: "
                    + "declare the ports in sockets, which torpord closes while the app is not owned"
            )
        }
        if specification.rules.exitsOnSuspend {
            warning(
                "exits_on_suspend",
                "the app cannot stand by (owner = \"external\"): it is launched where it is owned"
            )
        }
        if specification.rules.isOneshot, origins["type"] != nil {
            warning("owner", "a oneshot app cannot stand by: it is launched where it is owned")
        }
    }

    private func warnOfModes() {
        if specification.backgroundModes.contains(.externalAccessory), specification.devices.isEmpty,
            !specification.notifications.contains(.accessories)
        {
            let name = quoted(BackgroundMode.externalAccessory.rawValue)
            warning("background_modes", "\(name) does nothing without devices, or \"accessories\" in notifications")
        }
        for name in specification.wakeAfterForceQuit {
            guard BackgroundMode(rawValue: name) == nil else { continue }
            let hint = self.hint(name, among: BackgroundMode.allCases.map(\.rawValue))
            warning("wake_after_force_quit", "\(quoted(name)) is not a background mode" + hint)
        }
    }

    /// The apps that the draft defines: its instances, the template of its scenes, or a single app. Names of other apps
    /// in `requires` and `after` are not resolved yet.
    func expanded() -> [AppSpecification] {
        // If the number is missing because of an error, count one instance, so that other keys may have %i.
        let instances = instances ?? (origins["instances"] == nil ? nil : 1)
        guard let instances, specification.scenes == nil else {
            var app = specification
            if app.scenes != nil { app.launch = .onDemand }
            // By default, an app with scenes inside is launched when one of its scenes is opened.
            if app.innerScenes != nil, origins["launch"] == nil { app.launch = .onDemand }
            finish(&app)
            return [app]
        }
        var apps: [AppSpecification] = []
        let first = firstInstance ?? 1
        for number in first..<first + max(1, instances) {
            var app = specification
            app.name = AppName.instance(specification.template, number)
            app.instance = number
            app.put(.instance(number))
            app.environment["TORPOR_INSTANCE"] = String(number)
            finish(&app)
            apps.append(app)
        }
        return apps
    }

    private func finish(_ app: inout AppSpecification) {
        SandboxReader.applyAgent(&app) { origins[$0] != nil }
        if origins["stop_signal"] != nil { app.container?.hasImagesStopSignal = false }
        if answers { app.rules.answeredMessages = Set(app.signals.keys) }
        // A oneshot app does all its work during its launch, so by default its launch has no deadline.
        if app.rules.isOneshot, origins["launch_deadline"] == nil { app.rules.launchDeadline = nil }
        if let sockets {
            let node = app.instance.map { sockets.node.putting(.instance($0)) } ?? sockets.node
            app.sockets = SocketReader.sockets(sockets.context, node, app.declaredSettings) ?? []
        }
        if let snapshot {
            let node = app.instance.map { snapshot.node.putting(.instance($0)) } ?? snapshot.node
            app.snapshot = SnapshotReader.snapshot(snapshot.context, node)
            app.rules.snapshotDeadline = app.snapshot?.deadline
        }
        if let health {
            let node = app.instance.map { health.node.putting(.instance($0)) } ?? health.node
            app.health = ReadyReader.health(health.context, node, app.declaredSettings)
        }
        if ready != nil { app.container?.isReadyByHealth = false }
        // For a container, `ready = "exec"` (the default) cannot mean the execve(2) of podman itself, so a probe
        // determines when podman has started the container.
        defer { if app.container != nil, app.ready == .exec { app.rules.readiness = .probe } }
        guard let ready else { return }
        let node = app.instance.map { ready.node.putting(.instance($0)) } ?? ready.node
        guard let value = ReadyReader.ready(ready.context, node, app.declaredSettings) else { return }
        app.ready = value
        app.rules.readiness =
            switch value {
            case .exec: .exec
            case .notify: .notify
            case .delegate: .delegate
            case .probe: .probe
            }
    }
}

/// The rules for names of apps.
package enum AppName {
    /// The maximum length of an app's name in bytes, including an @ and the text after it. torpor-keeper and the
    /// recovery file have this limit.
    static let longest = 63

    /// Why a text is not a valid name of an app; nil if it is valid.
    package static func problem(_ name: String) -> String? {
        if name.utf8.contains(UInt8(ascii: "@")) {
            return "the name must not contain @, which separates it from an instance's number or a scene's name"
        }
        if name.isEmpty || name.utf8.count > longest { return "a name has from 1 to \(longest) characters" }
        if name.hasPrefix(".") || name.hasPrefix("-") { return "a name must not begin with . or -" }
        if !name.utf8.allSatisfy({ $0.isNameByte || $0 == UInt8(ascii: ".") }) {
            return "a name consists of letters, digits, -, _ and ."
        }
        return nil
    }

    static func instance(_ template: String, _ number: Int) -> String { "\(template)@\(number)" }

    /// The name of the app that stands for a scene of a template.
    package static func scene(_ template: String, _ name: String) -> String { "\(template)@\(name)" }

    /// The template's name and the scene's own name; `nil` if the text is not the name of an app that stands for a
    /// scene.
    package static func sceneParts(_ name: String) -> (template: String, scene: String)? {
        let parts = name.utf8.split(separator: UInt8(ascii: "@"), maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let (template, scene) = (String(parts[0]) ?? "", String(parts[1]) ?? "")
        return problem(template) == nil && problem(scene: scene, of: template) == nil ? (template, scene) : nil
    }

    /// Why a text is not a valid name of a scene; nil if it is valid.
    package static func problem(scene name: String, of template: String) -> String? {
        let most = longest - template.utf8.count - 1
        if name.isEmpty || name.utf8.count > most {
            return "the name of a scene of \(template) has from 1 to \(most) characters"
        }
        if name.utf8.contains(UInt8(ascii: "@")) { return "the name of a scene must not contain @" }
        return problem(name)
    }
}
