// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import WireText

/// An app as its tables say it, before names are looked up and instances made.
struct AppDraft {
    var specification: AppSpecification
    /// `instances`.
    var instances: Int?
    /// `instance_first`: the number of the first of them; 1 where it is not written.
    var firstInstance: Int?
    /// `answers`.
    var answers = false
    /// `ready`, read again for each instance, since `%i` may stand in it.
    var ready: (context: Context, node: Node)?
    /// `snapshot`, as `ready`.
    var snapshot: (context: Context, node: Node)?
    /// `sockets`, as `ready`.
    var sockets: (context: Context, node: Node)?
    /// Where each key that was written stands.
    var origins: [String: Origin] = [:]
    /// Where the app's table stands.
    var origin: Origin

    init(name: String, origin: Origin) {
        specification = AppSpecification(name: name)
        self.origin = origin
    }

    /// An app that begins with what `[defaults]` says.
    init(name: String, origin: Origin, defaults: AppDraft) {
        self = defaults
        specification.name = name
        specification.template = name
        self.origin = origin
    }

    /// Takes over what a table says.
    mutating func read(_ context: Context, _ node: Node) {
        let found = Read.table(context, node, AppKeys.all, into: &self)
        origins.merge(found) { _, new in new }
    }

    /// `requires` and `after` as they are written; an app that `[defaults]` tells to wait for itself need not.
    var dependencies: (requires: [String], after: [String]) {
        func names(_ key: String, _ names: [String]) -> [String] {
            guard let origin = origins[key], origin.context.path.hasPrefix("defaults.") else { return names }
            return names.filter { $0 != specification.template }
        }
        return (names("requires", specification.requires), names("after", specification.after))
    }

    /// A complaint about a key's value, at the table where the key was not written.
    package func error(_ key: String, _ message: String) {
        (origins[key] ?? origin).error(message)
    }

    /// As `error`.
    func warning(_ key: String, _ message: String) {
        (origins[key] ?? origin).warning(message)
    }

    /// What can only be seen when all keys are read.
    func check() {
        let rules = specification.rules
        if specification.exec.isEmpty, origins["exec"] == nil {
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
                warning("resources", "\(state.rawValue).memory_high is more than memory_limit, and never reached")
            }
        }
        if let time = specification.rules.taskTime, specification.rules.expiryWarning >= time,
            origins["expiry_warning"] != nil
        {
            error("expiry_warning", "must be shorter than task_time")
        }
        SettingReader.check(self)
        TransferReader.check(self)
        warnOfModes()
        let location = origins["location"] == nil ? "regions" : "location"
        if origins[location] != nil, !specification.backgroundModes.contains(.location) {
            warning(location, "does nothing without background_modes = [\"location\"]")
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
        if instances == nil, firstInstance != nil {
            warning("instance_first", "does nothing without instances")
        }
        if answers, specification.signals.isEmpty {
            warning("answers", "there is nothing to answer without signals")
        }
        if rules.isOneshot, rules.watchdog != nil {
            warning("watchdog", "a oneshot app has no heartbeat once it is done")
        }
    }

    private func warnOfModes() {
        for mode in specification.backgroundModes where !mode.isBuilt {
            warning("background_modes", "\(quoted(mode.rawValue)) does nothing yet")
        }
        for name in specification.wakeAfterForceQuit {
            guard let mode = BackgroundMode(rawValue: name) else {
                let hint = Nearest.hint(name, among: BackgroundMode.allCases.map(\.rawValue))
                warning("wake_after_force_quit", "\(quoted(name)) is no background mode" + hint)
                continue
            }
            if !mode.isBuilt { warning("wake_after_force_quit", "\(quoted(name)) does nothing yet") }
        }
    }

    /// The apps that the draft stands for, without `requires` and `after`.
    func expanded() -> [AppSpecification] {
        guard let instances else {
            var app = specification
            finish(&app)
            return [app]
        }
        var apps: [AppSpecification] = []
        let first = firstInstance ?? 1
        for number in first..<first + max(1, instances) {
            var app = specification
            app.name = AppName.instance(specification.template, number)
            app.instance = number
            app.substitute(String(number))
            app.environment["TORPOR_INSTANCE"] = String(number)
            finish(&app)
            apps.append(app)
        }
        return apps
    }

    private func finish(_ app: inout AppSpecification) {
        if answers { app.rules.answeredMessages = Set(app.signals.keys) }
        // Its launch is its work, however long that is.
        if app.rules.isOneshot, origins["launch_deadline"] == nil { app.rules.launchDeadline = nil }
        if let sockets {
            let node = app.instance.map { sockets.node.replacing(String($0)) } ?? sockets.node
            app.sockets = SocketReader.sockets(sockets.context, node, app.declaredSettings) ?? []
        }
        if let snapshot {
            let node = app.instance.map { snapshot.node.replacing(String($0)) } ?? snapshot.node
            app.snapshot = SnapshotReader.snapshot(snapshot.context, node)
            app.rules.snapshotDeadline = app.snapshot?.deadline
        }
        guard let ready else { return }
        let node = app.instance.map { ready.node.replacing(String($0)) } ?? ready.node
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

extension AppSpecification {
    /// Puts an instance's number where `%i` stands.
    fileprivate mutating func substitute(_ number: String) {
        func put(_ text: String) -> String { text.numbered(number) }
        exec = exec.map(put)
        presentation.title = presentation.title.map(put)
        presentation.titles = presentation.titles.mapValues(put)
        presentation.icon = presentation.icon.map(put)
        settings.value.substitute(number)
    }
}

extension AppSettings {
    fileprivate mutating func substitute(_ number: String) {
        func put(_ text: String) -> String { text.numbered(number) }
        directory = directory.map(put)
        environment = environment.mapValues(put)
        for index in environmentFiles.indices { environmentFiles[index].path = put(environmentFiles[index].path) }
        for index in beforeStart.indices { beforeStart[index].command = beforeStart[index].command.map(put) }
        for index in afterStop.indices { afterStop[index].command = afterStop[index].command.map(put) }
        sharedResources = sharedResources.map(put)
        purgeable = purgeable.map(put)
        data.firstLaunch = data.firstLaunch.map(put)
        events.substitute(number)
        if case .file(let path) = output.standardInput { output.standardInput = .file(put(path)) }
        if case .file(let path) = output.standardError { output.standardError = .file(put(path)) }
    }
}

extension AppEvents {
    fileprivate mutating func substitute(_ number: String) {
        func put(_ text: String) -> String { text.numbered(number) }
        opening.command = opening.command.map(put)
        settingsFiles = settingsFiles.map(put)
        identityFiles = identityFiles.map(put)
        for index in paths.indices {
            paths[index].name = put(paths[index].name)
            paths[index].path = put(paths[index].path)
        }
        for index in devices.indices {
            devices[index].name = put(devices[index].name)
            devices[index].node = devices[index].node.map(put)
            devices[index].properties = devices[index].properties.mapValues(put)
        }
    }
}

extension Node {
    /// The same value with an instance's number where `%i` stands.
    fileprivate func replacing(_ number: String) -> Node {
        var result = self
        switch value {
        case .string(let text): result.value = .string(text.numbered(number))
        case .array(let elements): result.value = .array(elements.map { $0.replacing(number) })
        case .table(let members):
            result.value = .table(
                members.map { Member(key: $0.key, position: $0.position, node: $0.node.replacing(number)) }
            )
        case .integer, .double, .boolean, .date: break
        }
        return result
    }
}

extension String {
    /// The text with an instance's number where `%i` stands; where it is `%02i`, with so many digits at least.
    fileprivate func numbered(_ number: String) -> String {
        let bytes = Array(utf8)
        guard bytes.contains(UInt8(ascii: "%")) else { return self }
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if let (length, digits) = Self.placeholder(bytes[index...]) {
                result += [UInt8](repeating: UInt8(ascii: "0"), count: max(0, digits - number.utf8.count))
                result += number.utf8
                index += length
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return String(wire: result)
    }

    /// How long a `%i` or `%02i` is that the bytes begin with, and how many digits it asks for.
    private static func placeholder(_ bytes: ArraySlice<UInt8>) -> (length: Int, digits: Int)? {
        if bytes.starts(with: "%i".utf8) { return (2, 1) }
        guard bytes.starts(with: "%0".utf8), let digit = bytes.dropFirst(2).first,
            (UInt8(ascii: "1")...UInt8(ascii: "9")).contains(digit), bytes.dropFirst(3).first == UInt8(ascii: "i")
        else { return nil }
        return (4, Int(digit - UInt8(ascii: "0")))
    }
}

/// What apps can be called.
package enum AppName {
    static let longest = 64

    /// What is wrong with a name, if anything.
    package static func problem(_ name: String) -> String? {
        if name.utf8.contains(UInt8(ascii: "@")) {
            return "the name must not contain @: it stands before an instance's number"
        }
        if name.isEmpty || name.utf8.count > longest { return "a name has from 1 to \(longest) characters" }
        if name.hasPrefix(".") || name.hasPrefix("-") { return "a name must not begin with . or -" }
        if !name.utf8.allSatisfy({ $0.isNameByte || $0 == UInt8(ascii: ".") }) {
            return "a name consists of letters, digits, -, _ and ."
        }
        return nil
    }

    static func instance(_ template: String, _ number: Int) -> String { "\(template)@\(number)" }
}
