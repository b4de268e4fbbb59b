// SPDX-License-Identifier: Apache-2.0

import Bundles
import Linux
import Permissions
import WireText

/// The manifest of a bundle as its author wrote it: the part of `manifest.toml` before `[files]`.
public struct BundleManifest {
    /// The bundle's name, which an app names in its key `bundle`.
    public var name = ""
    /// The bundle's version.
    public var version = ""
    /// What the bundle requires of the machine: `arch`, `kernel >= 6.7` and others.
    public var needs: [String] = []
    /// The path of the app's program in the bundle, such as `bin/notes`; nil if the program is not part of the bundle.
    /// Set only by ``check(_:hasFirstLaunch:file:)``.
    public private(set) var program: String?
    /// The tables `[app]`, `[settings]` and `[permissions]`.
    private var app: (context: Context, node: Node)?
    private var settings: (context: Context, node: Node)?
    private var permissions: (context: Context, node: Node)?

    /// The keys of `[apps.NAME]` that the author of a bundle, who is not trusted, may set. They describe the program,
    /// its checks and its requests. All other keys are reserved for the machine's owner: they name users, name files
    /// that torpord reads with its own rights, raise limits, or affect other apps and the machine.
    static let appKeys: Set<String> = [
        "answers", "categories", "data_folders", "directory", "environment", "exec", "exits_on_suspend", "health",
        "icon",
        "launch", "launch_image", "notify_access", "permissions", "ready", "restart", "sandbox", "settings",
        "settings_format", "signals", "stop_signal", "success_exit_status", "summary", "title", "type", "watchdog",
        "watchdog_signal",
    ]

    private static let keys: [Key<BundleManifest>] = [
        .value("name", \.name) { context, node in
            Read.text(context, node).flatMap { word(context, node, $0, BundleWord.checkName) }
        },
        .value("version", \.version) { context, node in
            Read.text(context, node).flatMap { word(context, node, $0, BundleWord.checkVersion) }
        },
        .value("needs", \.needs, Read.texts),
        Key("app") { context, node, manifest in
            let known = AppKeys.all.map(\.name)
            for member in Read.members(context, node) ?? [] where !appKeys.contains(member.key) {
                guard known.contains(member.key) else { continue }
                context.at(member.key).error("is for the machine's owner to set, not for a bundle", at: member.position)
            }
            manifest.app = (context, node)
        },
        Key("settings") { context, node, manifest in manifest.settings = (context, node) },
        Key("permissions") { context, node, manifest in manifest.permissions = (context, node) },
    ]

    private static func word(
        _ context: Context,
        _ node: Node,
        _ text: String,
        _ check: (String) throws(BundleFault) -> Void
    ) -> String? {
        do throws(BundleFault) {
            try check(text)
            return text
        } catch {
            context.error(error.description, at: node.position)
            return nil
        }
    }

    /// Parses the part of a manifest before `[files]`; nil after an error.
    static func read(_ text: [UInt8], _ context: Context) -> BundleManifest? {
        let root: Node
        do throws(DocumentError) { root = try Document.parse(text) } catch {
            context.error(error.message, at: error.position)
            return nil
        }
        var manifest = BundleManifest()
        let found = Read.table(context, root, keys, into: &manifest)
        for key in ["name", "version", "app"] where found[key] == nil {
            context.at(key).error("is missing", at: SourcePosition(line: 1, column: 1))
        }
        return context.sink.hasErrors ? nil : manifest
    }

    /// Reads a manifest and checks its app, with no keys from the machine's configuration.
    ///
    /// - Parameters:
    ///   - text: the part of the manifest before `[files]`.
    ///   - hasFirstLaunch: whether the bundle has a folder `first-launch`.
    ///   - file: the manifest's name in diagnostics.
    public static func check(
        _ text: [UInt8],
        hasFirstLaunch: Bool,
        file: String
    ) -> Result<BundleManifest, DiagnosticList> {
        let sink = DiagnosticSink()
        // `/bundle` stands for the bundle's folder. Paths are only compared with it and never opened.
        let context = Context(sink: sink, file: file, folder: "/bundle")
        if var manifest = read(text, context) {
            let origin = Origin(context: context, position: SourcePosition(line: 1, column: 1))
            let app = AppDraft(name: manifest.name, origin: origin)
            let installed = InstalledManifest(path: file, text: text, hasFirstLaunch: hasFirstLaunch)
            let bundle = BundleReference(name: manifest.name, folder: "/bundle", version: manifest.version)
            let draft = manifest.draft(app, bundle, installed, owner: [], sink, checked: true)
            if let program = draft.specification.exec.first, let folder = bundle.path, program.hasPrefix(folder + "/") {
                manifest.program = String(program.dropFirst(folder.count + 1))
            }
            if !sink.hasErrors { return .success(manifest) }
        }
        return .failure(DiagnosticList(diagnostics: sink.sorted))
    }

    // MARK: The app

    /// Creates the app that the manifest describes, and applies the keys that the machine's owner sets.
    ///
    /// - Parameters:
    ///   - app: the app without any key.
    ///   - owner: the tables of the machine's configuration, which override the manifest: `[defaults]`, then the app's
    ///     own table.
    ///   - sink: the sink for errors and warnings about the manifest.
    ///   - checked: whether to make all checks, including those that compare the manifest's keys with the owner's.
    func draft(
        _ app: AppDraft,
        _ bundle: BundleReference,
        _ installed: InstalledManifest,
        owner: [(context: Context, node: Node)],
        _ sink: DiagnosticSink,
        checked: Bool
    ) -> AppDraft {
        var draft = app
        var bundle = bundle
        let place = bundle.path ?? "/"
        draft.specification.bundle = bundle
        let context = Context(sink: sink, file: installed.path, folder: place)
        if let app = self.app {
            draft.read(context.at("app"), app.node)
            if checked { draft.origin = Origin(context: context.at("app"), position: app.node.position) }
        }
        for (key, table) in [("settings", settings), ("permissions", permissions)] {
            guard let table else { continue }
            guard draft.origins[key] == nil else {
                context.at(key).error("stands in [app] too: leave one of the two out", at: table.node.position)
                continue
            }
            let member = Member(key: key, position: table.node.position, node: table.node)
            draft.read(context, Node(value: .table([member]), position: table.node.position))
        }
        check(&draft, place)
        let given = draft
        for table in owner { draft.read(table.context, table.node) }
        // Set the keys whose defaults depend on the bundle's folder.
        if draft.specification.directory == nil { draft.specification.directory = place }
        if draft.origins["version"] == nil { draft.specification.data.version = version }
        if installed.hasFirstLaunch, draft.origins["first_launch"] == nil {
            draft.specification.data.firstLaunch = place + "/first-launch"
        }
        // Resolve the program's path against the bundle's folder, even if the machine's owner sets another working
        // directory.
        if let program = draft.specification.exec.first, program.contains("/"), !program.hasPrefix("/") {
            draft.specification.exec[0] = place + "/" + program
        }
        // Without this variable, Python would write compiled files into the bundle, and the bundle would no longer
        // match its signature.
        let compiles = "PYTHONDONTWRITEBYTECODE"
        if draft.specification.environment[compiles] == nil { draft.specification.environment[compiles] = "1" }
        let environment = draft.specification.environment
        bundle.variables = Set(given.specification.environment.filter { environment[$0.key] == $0.value }.keys)
        bundle.text = installed.text
        draft.specification.bundle = bundle
        if checked { checkWhole(draft) }
        return draft
    }

    /// Checks the manifest's keys whose values are restricted for bundles.
    private func check(_ draft: inout AppDraft, _ place: String) {
        // A program can change its settings, so a path that contains a setting could refer to any file.
        func isFixed(_ path: String) -> Bool { SettingTemplate.names(in: path).isEmpty }
        func isInside(_ path: String) -> Bool { isFixed(path) && (path == place || path.hasPrefix(place + "/")) }
        let app = draft.specification
        if let directory = app.directory, !isInside(directory) {
            draft.error("directory", "must be inside the bundle")
        }
        if let program = app.exec.first, !Self.isAllowed(program, place) {
            draft.error("exec", "the program must be inside the bundle, or in /usr, without .. on its path")
        }
        let icons = [app.presentation.icon].compactMap(\.self) + app.presentation.icons.values
        if !icons.allSatisfy(isInside) { draft.error("icon", "must be inside the bundle") }
        if let image = app.presentation.launchImage, !isInside(image) {
            draft.error("launch_image", "must be inside the bundle")
        }
        if app.environment["PATH"] != nil {
            // PATH also applies to commands that the machine's owner configures for the app, so a bundle must not set
            // it.
            draft.error("environment", "PATH is for the machine's owner to set, not for a bundle")
        }
        if draft.origins["sandbox"] != nil, app.sandbox.mode == nil {
            draft.error("sandbox", "a bundle can ask for a sandbox, and cannot refuse one")
        }
        for (key, probe) in [("ready", draft.ready), ("health", draft.health)] {
            if let probe, let problem = Self.problem(of: probe.node, place) { draft.error(key, problem) }
        }
        // A bundle cannot grant itself permissions, so users are asked for each permission.
        let asked = app.sandbox.declarations.map { declaration in
            var asked = declaration
            if asked.initial == .allow { asked.initial = .ask }
            return asked
        }
        draft.specification.sandbox.declarations = asked
    }

    /// Whether a bundle may name this program: a program in the bundle, or a program of the system. A path with `..` is
    /// refused, because `..` after a symlink leads to another folder than the text suggests.
    private static func isAllowed(_ program: String, _ place: String) -> Bool {
        guard SettingTemplate.names(in: program).isEmpty else { return false }
        guard program.contains("/") else { return true }
        guard !program.split(separator: "/").contains("..") else { return false }
        let path = Path.join(place, program)
        let folders = [place + "/", "/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/"]
        return folders.contains { path.hasPrefix($0) }
    }

    /// The shortest interval at which a bundle's app may be checked.
    private static let shortestInterval = Duration.milliseconds(100)

    /// Why a bundle may not have this probe; nil if it may. Probes of bundles are restricted because torpord itself
    /// runs them, outside the app's sandbox.
    private static func problem(of probe: Node, _ place: String) -> String? {
        guard case .table(let members) = probe.value else { return nil }
        for member in members {
            switch (member.key, member.node.value) {
            case ("file", _): return "file is for the machine's owner to set, not for a bundle"
            case ("tcp", .string(let text)), ("http", .string(let text)):
                guard isOfThisMachine(text) else {
                    return "must ask this machine itself: 127.0.0.1, [::1] or localhost"
                }
            case ("command", .array(let words)):
                if case .string(let program)? = words.first?.value, !isAllowed(program, place) {
                    return "the program of command must be inside the bundle, or in /usr, without .. on its path"
                }
            case ("interval", .string(let text)):
                if let time = try? Quantity.duration(text), time < shortestInterval {
                    return "interval must be at least 100ms for a bundle"
                }
            default: break
            }
        }
        return nil
    }

    /// Whether an address is certainly on this machine. False if the host name contains a setting, because the setting
    /// may have any value.
    private static func isOfThisMachine(_ address: String) -> Bool {
        let rest = address.hasPrefix("http://") ? address.dropFirst(7) : address[...]
        let end = rest.hasPrefix("[") ? rest.firstIndex(of: "]").map { rest.index(after: $0) } : nil
        let host = end.map { rest[..<$0] } ?? rest.prefix { $0 != ":" && $0 != "/" && $0 != "?" && $0 != "#" }
        if host == "localhost" || host == "[::1]" { return true }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false)
        return numbers.count == 4 && numbers[0] == "127" && numbers.allSatisfy { UInt8($0) != nil }
    }

    /// Makes the checks of all keys of an app, including those that are read again for each instance.
    private func checkWhole(_ draft: AppDraft) {
        draft.check()
        _ = draft.expanded()
    }
}

/// The manifest of an installed bundle, without its list of files.
public struct InstalledManifest: Sendable {
    /// The path of the manifest, which contains the link `current`.
    public let path: String
    /// The part of the manifest before `[files]`.
    public let text: [UInt8]
    /// Whether the bundle has a folder `first-launch`.
    public let hasFirstLaunch: Bool
    /// The version to which the link `current` points; nil if it is unknown.
    public var version: String?

    /// Creates a manifest from its parts.
    public init(path: String, text: [UInt8], hasFirstLaunch: Bool) {
        (self.path, self.text, self.hasFirstLaunch) = (path, text, hasFirstLaunch)
    }

    /// The end of the path of a manifest. It contains the link `current` instead of a version.
    static func end(of name: String) -> String { "/bundles/\(name)/current/manifest.toml" }

    /// Whether a path is that of an installed bundle's manifest.
    static func isPath(_ path: String) -> Bool {
        let names = path.split(separator: "/").suffix(4).map(String.init)
        return names.count == 4 && names[0] == "bundles" && path.hasSuffix(end(of: names[1]))
    }

    private static let mark = Array("[files]\n".utf8)

    /// The manifest's text as it is stored in the sources of a configuration. A last line `[files]` marks a bundle that
    /// has a folder `first-launch`.
    var kept: [UInt8] { text + (hasFirstLaunch ? Self.mark : []) }

    init(path: String, kept: [UInt8]) {
        let text = FileTable.head(of: kept)
        self.init(path: path, text: text, hasFirstLaunch: text.count < kept.count)
    }

    /// Why the manifest of the bundle `name` cannot be read now, if a later attempt may succeed. Nil if the manifest
    /// can be read, or if the failure is permanent.
    public static func passingProblem(_ name: String, in state: String) -> String? {
        guard case .failure(.passing(let why)) = read(name, in: state) else { return nil }
        return why
    }

    /// Removes the files of bundles that a killed `torpor uninstall` has left behind.
    public static func removeUninstalled(in state: String) {
        let folder = state + "/bundles"
        for name in (try? File.list(folder)) ?? [] where name.hasPrefix(BundleWord.removedMark) {
            try? File.removeTree("\(folder)/\(name)")
        }
    }

    /// Reads the manifest of a bundle's current version, without the list of files, which may be long.
    static func read(_ name: String, in state: String) -> Result<InstalledManifest, ConfigurationSystem.ReadFailure> {
        let path = state + end(of: name)
        do throws(Errno) {
            let folder = "\(state)/bundles/\(name)"
            let version = try File.readLink(folder + "/current")
            guard (try? BundleWord.checkVersion(version)) != nil else {
                return .failure(.unusable("\(folder)/current leads elsewhere"))
            }
            let file = try File.open("\(folder)/\(version)/manifest.toml", [.read, .nonBlocking, .noFollow])
            let start = try file.withRaw { raw throws(Errno) -> [UInt8]? in
                guard try File.status(descriptor: raw).kind == .regular else { return nil }
                return try File.read(raw, at: 0, maximum: BundleLimit.head + mark.count)
            }
            guard let start else { return .failure(.unusable("\(path) is not a regular file")) }
            let text = FileTable.head(of: start)
            guard text.count < start.count, text.count <= BundleLimit.head else {
                return .failure(.unusable("\(path) has no section [files] in its first \(BundleLimit.head >> 10) KiB"))
            }
            let hasFirstLaunch = (try? File.kind("\(folder)/\(version)/first-launch")) == .directory
            var manifest = InstalledManifest(path: path, text: text, hasFirstLaunch: hasFirstLaunch)
            manifest.version = version
            return .success(manifest)
        } catch {
            if error == .noSuchFileOrDirectory || error == .notDirectory { return .failure(.missing) }
            let why = "\(path) cannot be read: \(error)"
            return .failure(error.isPassing ? .passing(why) : .unusable(why))
        }
    }
}
