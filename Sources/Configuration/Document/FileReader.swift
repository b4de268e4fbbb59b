// SPDX-License-Identifier: Apache-2.0

import Bundles
import WireText

/// Reads a configuration file and the files that it includes, and creates a draft of each app.
struct FileReader {
    let system: ConfigurationSystem
    package let sink: DiagnosticSink
    var supervisor: SupervisorSpecification
    private(set) var supervisorOrigins: [String: Origin] = [:]
    private(set) var drafts: [String: AppDraft] = [:]
    private(set) var policies: [String: (policy: PolicySpecification, origin: Origin)] = [:]
    var files: [ConfigurationSources.File] = []
    /// The folders in which `include` looks for files.
    private(set) var listed: [String] = []
    /// Whether a file has the table `[defaults]`.
    private(set) var hasDefaults = false
    /// Apps of bundles. They are read after all files, because the state directory, which contains the bundles, may be
    /// set in any of the files.
    private var bundled: [BundledApp] = []

    /// The maximum depth of nested includes.
    static let depthLimit = 16
    /// The maximum number of files in a configuration.
    static let countLimit = 1_024

    static let keys = ["include", "supervisor", "defaults", "policies", "apps"]

    init(system: ConfigurationSystem, sink: DiagnosticSink, supervisor: SupervisorSpecification) {
        self.system = system
        self.sink = sink
        self.supervisor = supervisor
    }

    /// Reads the first file, and all files that it includes.
    mutating func read(_ path: String) {
        let context = context(of: path)
        switch system.read(absolute(path)) {
        case .success(let bytes):
            let defaults = AppDraft(name: "", origin: Origin(context: context, position: .unknown))
            read(context, bytes, chain: [], defaults: defaults)
        case .failure(.missing): context.error("there is no such file", at: .unknown)
        case .failure(.unusable(let reason)), .failure(.passing(let reason)): context.error(reason, at: .unknown)
        }
        for app in bundled { drafts[app.draft.specification.template] = readBundle(app) }
    }

    private func absolute(_ path: String) -> String { Path.join(system.workingDirectory, path) }

    private func context(of path: String) -> Context {
        Context(sink: sink, file: path, folder: Path.folder(absolute(path)))
    }

    /// Reads one file. `chain` contains the files that include it, and `defaults` the values of `[defaults]` in these
    /// files.
    private mutating func read(
        _ context: Context,
        _ bytes: [UInt8],
        chain: [String],
        defaults: AppDraft
    ) {
        files.append(ConfigurationSources.File(path: context.file, text: bytes))
        let root: Node
        do throws(DocumentError) {
            root = try Document.parse(bytes)
        } catch {
            context.error(error.message, at: error.position)
            return
        }
        guard case .table(let members) = root.value else { return }
        var defaults = defaults
        if let member = members.first(where: { $0.key == "defaults" }) {
            hasDefaults = true
            let inner = context.at("defaults")
            // Read `[defaults]` even if no app uses the table, so that mistakes in it are reported.
            if Read.members(inner, member.node) != nil {
                defaults.read(inner, member.node)
                defaults.defaultTables.append((inner, member.node))
            }
        }
        let before = (drafts.count, files.count)
        for member in members {
            let inner = context.at(member.key)
            switch member.key {
            case "include": include(inner, member.node, chain: chain, defaults: defaults)
            case "supervisor": readSupervisor(inner, member.node)
            case "defaults": break
            case "policies": readPolicies(inner, member.node)
            case "apps": readApps(inner, member.node, defaults)
            default: Read.unknown(inner, member, among: Self.keys)
            }
        }
        if !chain.isEmpty, before == (drafts.count, files.count),
            let member = members.first(where: { $0.key == "defaults" })
        {
            context.at("defaults").warning(
                "has no effect: it is for the apps of this file and of those that it includes, and there are none",
                at: member.position
            )
        }
    }

    // MARK: Includes

    private mutating func include(
        _ context: Context,
        _ node: Node,
        chain: [String],
        defaults: AppDraft
    ) {
        let chain = chain + [context.file]
        guard case .array(let elements) = node.value else {
            _ = context.expected("an array of strings", node) as Int?
            return
        }
        for (index, element) in elements.enumerated() {
            let inner = context.at(index)
            guard let text = Read.text(inner, element) else { continue }
            let written = text.hasPrefix("/") ? text : Path.folder(context.file) + "/" + text
            let isPattern = Glob.isPattern(text)
            let found = isPattern ? match(Path.normal(written)) : [Path.normal(written)]
            for path in found {
                include(inner, element.position, path, isListed: isPattern, chain: chain, defaults: defaults)
            }
            let folder = Path.folder(Path.normal(written))
            if isPattern, !Glob.isPattern(folder), !listed.contains(folder) { listed.append(folder) }
            if isPattern, !Glob.isPattern(folder), system.names(absolute(folder)) == nil {
                _ = isUnjudged(inner, element.position, folder)
            }
            if isPattern { warnOfSkipped(inner, element.position, Path.normal(written)) }
        }
    }

    /// Warns of files that look like configuration files, but whose names do not match `*.toml`.
    private func warnOfSkipped(_ context: Context, _ position: SourcePosition, _ pattern: String) {
        let folder = Path.folder(pattern)
        guard pattern.hasSuffix("/*.toml"), !Glob.isPattern(folder) else { return }
        for name in system.names(absolute(folder)) ?? [] where Self.isMeant(name) {
            context.warning(
                "\(quoted(folder + "/" + name)) is skipped, since its name does not end in .toml: rename it",
                at: position
            )
        }
    }

    /// Whether a file whose name does not match `*.toml` is probably meant as a configuration file, such as `web.conf`.
    /// False for hidden files and for backups such as `web.toml~`.
    private static func isMeant(_ name: String) -> Bool {
        guard !name.hasPrefix("."), !name.hasSuffix(".toml") else { return false }
        let endings = [".conf", ".cfg", ".config", ".ini", ".toml", ".tml", ".toml.txt"]
        return endings.contains { name.lowercased().hasSuffix($0) }
    }

    private func match(_ pattern: String) -> [String] {
        Glob.paths(pattern) { system.names(absolute($0)) }
    }

    private mutating func include(
        _ context: Context,
        _ position: SourcePosition,
        _ path: String,
        isListed: Bool,
        chain: [String],
        defaults: AppDraft
    ) {
        if let start = chain.firstIndex(where: { absolute($0) == absolute(path) }) {
            let cycle = (chain[start...] + [path]).joined(separator: " → ")
            context.error("includes itself: \(cycle)", at: position)
            return
        }
        if files.contains(where: { absolute($0.path) == absolute(path) }) { return }
        guard chain.count < Self.depthLimit, files.count < Self.countLimit else {
            context.error(
                "includes are nested more than \(Self.depthLimit) deep or name more than \(Self.countLimit) files",
                at: position
            )
            return
        }
        switch system.read(absolute(path)) {
        case .success(let bytes):
            read(self.context(of: path), bytes, chain: chain, defaults: defaults)
        case .failure(.missing) where isListed:
            // Its folder lists the name, so it is probably a symlink.
            context.error("\(quoted(path)) leads to no file: correct or remove the symlink", at: position)
        case .failure(.missing): context.error("there is no file \(quoted(path))", at: position)
        case .failure(.unusable(let reason)), .failure(.passing(let reason)):
            if isUnjudged(context, position, path) { return }
            context.error("\(quoted(path)): \(reason)", at: position)
        }
    }

    /// Whether a file or folder cannot be judged, because only the supervisor may read it. Warns of that.
    private func isUnjudged(_ context: Context, _ position: SourcePosition, _ path: String) -> Bool {
        guard system.isForbidden(absolute(path)) else { return false }
        sink.isPartial = true
        context.warning("\(quoted(path)) is not judged, since you may not read it", at: position)
        return true
    }

    // MARK: Tables

    private mutating func readSupervisor(_ context: Context, _ node: Node) {
        let found = Read.table(context, node, SupervisorKeys.all, into: &supervisor)
        for (key, origin) in found {
            if let other = supervisorOrigins[key] {
                origin.error("is already set at \(other.place)")
            } else {
                supervisorOrigins[key] = origin
            }
        }
    }

    private mutating func readPolicies(_ context: Context, _ node: Node) {
        for member in Read.members(context, node) ?? [] {
            let inner = context.at(member.key)
            let origin = Origin(context: inner, position: member.position)
            if let problem = AppName.problem(member.key) {
                origin.error(problem)
                continue
            }
            if let other = policies[member.key] {
                origin.error("is already declared at \(other.origin.place)")
                continue
            }
            var policy = PolicySpecification(name: member.key, path: "")
            let found = Read.table(inner, member.node, SupervisorKeys.policy, into: &policy)
            if case .table = member.node.value, found["path"] == nil {
                origin.error("path is missing: write \(MachineHints.library(of: member.key))")
            }
            policies[member.key] = (policy, origin)
        }
    }

    private mutating func readApps(_ context: Context, _ node: Node, _ defaults: AppDraft) {
        let members = Read.members(context, node) ?? []
        // A draft is large, so copying the table each time it grows would take a third of this function's time.
        drafts.reserveCapacity(drafts.count + members.count)
        for member in members {
            let inner = context.at(member.key)
            let origin = Origin(context: inner, position: member.position)
            if let problem = AppName.problem(member.key) {
                origin.error(problem)
                continue
            }
            guard case .table = member.node.value else {
                _ = inner.expected("a table: write [apps.\(member.key)]", member.node) as Int?
                continue
            }
            var draft = AppDraft(name: member.key, origin: origin, defaults: defaults)
            if let other = drafts[member.key] {
                draft.read(inner, member.node)
                origin.error("is already declared at \(other.origin.place)")
                continue
            }
            if let (name, origin) = bundle(inner, member.node) {
                bundled.append(BundledApp(name: name, table: (inner, member.node), draft: draft, origin: origin))
            } else {
                draft.read(inner, member.node)
            }
            drafts[member.key] = draft
        }
    }

    /// The bundle that an app's table names; nil if it names none, or if the name is not valid.
    private func bundle(_ context: Context, _ node: Node) -> (name: String, origin: Origin)? {
        guard case .table(let members) = node.value, let member = members.first(where: { $0.key == "bundle" }),
            case .string(let name) = member.node.value, (try? BundleWord.checkName(name)) != nil
        else { return nil }
        return (name, Origin(context: context.at("bundle"), position: member.node.position))
    }
}
