// SPDX-License-Identifier: Apache-2.0

import Bundles
import WireText

/// The manifest of a bundle, as its author wrote it: `manifest.toml` up to `[files]`.
public struct BundleManifest {
    /// The name; apps refer to the bundle by it.
    public var name = ""
    /// The version.
    public var version = ""
    /// What the machine must have: `arch`, `kernel >= 6.7` and others.
    public var needs: [String] = []
    /// `[app]`.
    var app: (context: Context, node: Node)?
    /// Whether there is a table `[permissions]`.
    public var hasPermissions = false

    /// The keys of `[apps.NAME]` that only the machine's owner sets.
    static let ownersKeys: Set<String> = [
        "after_stop", "before_start", "bundle", "container", "group", "limits", "log", "resources", "stderr", "stdin",
        "supplementary_groups", "user",
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
            for member in Read.members(context, node) ?? [] where ownersKeys.contains(member.key) {
                context.at(member.key).error("is for the machine's owner to set, not for a bundle", at: member.position)
            }
            manifest.app = (context, node)
        },
        Key("permissions") { context, node, manifest in manifest.hasPermissions = Read.members(context, node) != nil },
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

    /// Reads the text before `[files]`; nil if there were errors.
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

    /// Reads a manifest and checks its app as a configuration with only this app would be checked.
    ///
    /// - Parameters:
    ///   - text: what stands before `[files]`.
    ///   - hasFirstLaunch: whether the bundle has a folder `first-launch`.
    ///   - file: how diagnostics name the manifest.
    public static func check(
        _ text: [UInt8],
        hasFirstLaunch: Bool,
        file: String,
        environment: [String: String]
    ) -> Result<BundleManifest, DiagnosticList> {
        let sink = DiagnosticSink()
        guard let manifest = read(text, Context(sink: sink, file: file, folder: "/")) else {
            return .failure(DiagnosticList(diagnostics: sink.sorted))
        }
        var system = ConfigurationSystem.live
        let (inner, name) = (system.read, manifest.name)
        system.read = { path in
            path == "/bundle.toml" ? .success(Array("[apps.\(name)]\nbundle = \"\(name)\"\n".utf8)) : inner(path)
        }
        system.bundle = { _, _ in
            .success(InstalledManifest(path: file, text: text, hasFirstLaunch: hasFirstLaunch))
        }
        switch ConfigurationLoader.load(path: "/bundle.toml", environment: environment, system: system) {
        case .failure(let list): return .failure(list)
        case .success(let configuration):
            // What is wrong with a manifest is a warning for those who run it, since other apps must not suffer from it.
            let faults = configuration.warnings.filter { $0.path == "apps.\(name).bundle" }
            return faults.isEmpty ? .success(manifest) : .failure(DiagnosticList(diagnostics: faults))
        }
    }
}

/// The manifest of an installed bundle, without its list of files.
public struct InstalledManifest: Sendable {
    /// Its path.
    public let path: String
    /// What stands before `[files]`.
    public let text: [UInt8]
    /// Whether the bundle has a folder `first-launch`.
    public let hasFirstLaunch: Bool

    /// Creates one of its parts.
    public init(path: String, text: [UInt8], hasFirstLaunch: Bool) {
        (self.path, self.text, self.hasFirstLaunch) = (path, text, hasFirstLaunch)
    }

    /// The end of its path: the link `current` names the version.
    static func end(of name: String) -> String { "/bundles/\(name)/current/manifest.toml" }

    private static let mark = Array("[files]\n".utf8)

    /// What is kept of it among the sources of a configuration.
    var kept: [UInt8] { text + (hasFirstLaunch ? Self.mark : []) }

    init(path: String, kept: [UInt8]) {
        let text = FileTable.head(of: kept)
        self.init(path: path, text: text, hasFirstLaunch: text.count < kept.count)
    }

    /// Takes from a whole manifest what is needed; the list of files is not checked here.
    init(path: String, manifest: [UInt8]) {
        let text = FileTable.head(of: manifest)
        let name = Array("\n\"first-launch/".utf8)
        let rest = manifest[text.count...]
        var (start, has) = (rest.startIndex, false)
        while !has, let line = rest[start...].firstIndex(of: name[0]) {
            has = rest[line...].starts(with: name)
            start = line + 1
        }
        self.init(path: path, text: text, hasFirstLaunch: has)
    }
}

extension FileReader {
    /// Reads an app of a bundle: what the bundle's manifest says, and over it what the machine's configuration says.
    mutating func readBundle(_ name: String, _ origin: Origin, into draft: inout AppDraft) {
        let ofBundle = BundleReference(name: name, folder: "\(supervisor.stateDirectory)/bundles/\(name)")
        draft.specification.bundle = ofBundle
        let installed: InstalledManifest
        switch system.bundle(name, supervisor.stateDirectory) {
        case .success(let found): installed = found
        case .failure(.missing):
            return origin.warning("there is no bundle \(quoted(name)): the app is not launched until it is installed")
        case .failure(.unusable(let why)):
            return origin.warning("the bundle \(quoted(name)) cannot be used, so the app is not launched: \(why)")
        }
        // What is wrong in a bundle concerns only its app: it must not keep others from being launched.
        let own = DiagnosticSink()
        let folder = Path.folder(Path.folder(installed.path))
        var context = Context(sink: own, file: installed.path, folder: folder)
        guard let manifest = BundleManifest.read(installed.text, context), let app = manifest.app else {
            return refuse(own, name, origin)
        }
        let place = folder + "/" + manifest.version
        context = Context(sink: own, file: installed.path, folder: place).at("app")
        var trial = draft
        trial.read(context, app.node)
        guard !own.hasErrors else { return refuse(own, name, origin) }
        draft.specification.bundle = BundleReference(name: name, folder: folder, version: manifest.version)
        draft = trial.putting(draft.specification.bundle)
        if trial.origins["directory"] == nil { draft.specification.directory = place }
        if trial.origins["version"] == nil { draft.specification.data.version = manifest.version }
        if installed.hasFirstLaunch, trial.origins["first_launch"] == nil {
            draft.specification.data.firstLaunch = place + "/first-launch"
        }
        // The machine's owner may choose another working directory, and the program stays in the bundle.
        if let program = draft.specification.exec.first, program.contains("/"), !program.hasPrefix("/") {
            draft.specification.exec[0] = place + "/" + program
        }
        files.append(ConfigurationSources.File(path: installed.path, text: installed.kept))
    }

    private func refuse(_ sink: DiagnosticSink, _ name: String, _ origin: Origin) {
        let first = sink.sorted.first { $0.severity == .error }.map { "\($0.path): \($0.message)" } ?? ""
        origin.warning("the manifest of the bundle \(quoted(name)) is not valid, so the app is not launched: \(first)")
    }
}

extension AppDraft {
    fileprivate func putting(_ bundle: BundleReference?) -> AppDraft {
        var draft = self
        draft.specification.bundle = bundle
        return draft
    }
}
