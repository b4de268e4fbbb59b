// SPDX-License-Identifier: Apache-2.0

import Bundles
import Permissions

/// An app whose table has the key `bundle`.
struct BundledApp {
    /// The bundle's name.
    let name: String
    /// The app's table.
    let table: (context: Context, node: Node)
    /// The app, with only the values of `[defaults]`.
    let draft: AppDraft
    /// The place of the key `bundle`.
    let origin: Origin

    /// The machine owner's tables for the app. Their diagnostics are reported to `sink`.
    fileprivate func tables(_ sink: DiagnosticSink) -> [(context: Context, node: Node)] {
        (draft.defaultTables + [table]).map { ($0.context.telling(sink), $0.node) }
    }

    /// The app without the values of any key.
    fileprivate func bare(_ sink: DiagnosticSink) -> AppDraft {
        AppDraft(
            name: draft.specification.template,
            origin: Origin(context: draft.origin.context.telling(sink), position: draft.origin.position)
        )
    }
}

extension FileReader {
    /// Reads an app of a bundle. Keys in the machine's configuration override those of the bundle's manifest.
    ///
    /// Errors in a manifest become warnings: torpord does not launch this app, but launches all others.
    mutating func readBundle(_ app: BundledApp) -> AppDraft {
        let folder = "\(supervisor.stateDirectory)/bundles/\(app.name)"
        // Check the tables of the machine's owner first, so that their errors are reported even if the bundle is
        // missing or unusable.
        _ = owned(app, folder, sink)
        let installed: InstalledManifest
        switch system.bundle(app.name, supervisor.stateDirectory) {
        case .success(let found): installed = found
        case .failure(.missing):
            app.origin.warning("there is no bundle \(quoted(app.name)): the app is not launched until it is installed")
            return owned(app, folder, DiagnosticSink())
        case .failure(.unusable(let why)): return refused(app, folder, why)
        case .failure(.passing(let why)): return unread(app, folder, why)
        }
        guard files.count < Self.countLimit || files.contains(where: { $0.path == installed.path }) else {
            return refused(app, folder, "the configuration has more than \(Self.countLimit) files and bundles")
        }
        let own = DiagnosticSink()
        guard
            let manifest = BundleManifest.read(installed.text, Context(sink: own, file: installed.path, folder: folder))
        else { return refused(app, folder, first(of: own)) }
        guard manifest.name == app.name else {
            return refused(app, folder, "\(installed.path) is the manifest of \(quoted(manifest.name))")
        }
        guard installed.version == nil || installed.version == manifest.version else {
            return refused(app, folder, "\(installed.path) is the manifest of version \(quoted(manifest.version))")
        }
        let bundle = BundleReference(name: app.name, folder: folder, version: manifest.version)
        // First make all checks on a draft that is then discarded. If they find errors, torpord does not use the
        // bundle, but the configuration stays valid.
        _ = manifest.draft(app.bare(own), bundle, installed, owner: app.tables(own), own, checked: true)
        guard !own.hasErrors else { return refused(app, folder, "version \(manifest.version): " + first(of: own)) }
        if !files.contains(where: { $0.path == installed.path }) {
            files.append(ConfigurationSources.File(path: installed.path, text: installed.kept))
        }
        // Now report warnings about the manifest. The checks above found no errors in it.
        let shown = DiagnosticSink(warning: sink)
        var draft = manifest.draft(app.bare(sink), bundle, installed, owner: app.tables(sink), shown, checked: false)
        let asked = manifest.draft(app.bare(own), bundle, installed, owner: [], own, checked: false)
        withhold(asked.specification.sandbox.declarations, from: &draft, app)
        return draft
    }

    /// Removes from the draft those permissions of the manifest that give access to torpord's own files, such as other
    /// bundles or the keys that verify bundles. With such a permission, an untrusted app could leave its sandbox. The
    /// machine's owner can still grant the permission by naming it in the app's table. An app that runs as another user
    /// than torpord keeps all permissions, because it may not read these files anyway.
    private func withhold(_ asked: [PermissionDeclaration], from draft: inout AppDraft, _ app: BundledApp) {
        if let user = draft.specification.user, system.userID(user) != system.effectiveUserID { return }
        let ownPaths = ownPaths
        draft.specification.sandbox.declarations.removeAll { declaration in
            guard asked.contains(declaration), let why = ownPaths.obstacle(to: declaration.permission) else {
                return false
            }
            app.origin.warning(
                "the bundle \(quoted(app.name)) asks for \(quoted(declaration.name)), which \(why): the permission is "
                    + "left out; write it in permissions of the app to allow it"
            )
            return true
        }
        for (index, declaration) in draft.specification.sandbox.declarations.enumerated() {
            guard case .files = declaration.permission, asked.contains(declaration) else { continue }
            draft.specification.sandbox.declarations[index].isOfBundle = true
        }
    }

    /// The paths that torpord itself uses, according to the part of the configuration that was read so far.
    var ownPaths: SandboxOwnPaths {
        SandboxOwnPaths(
            state: supervisor.stateDirectory,
            runtime: supervisor.runtimeDirectory,
            log: supervisor.logDirectory,
            configuration: files.map { Path.join(system.workingDirectory, $0.path) }
        )
    }

    /// The app with only the keys that the machine's owner sets. torpord does not launch it, because it has no bundle
    /// version.
    private func owned(_ app: BundledApp, _ folder: String, _ sink: DiagnosticSink) -> AppDraft {
        var draft = app.bare(sink)
        draft.specification.bundle = BundleReference(name: app.name, folder: folder)
        for table in app.tables(sink) { draft.read(table.context, table.node) }
        return draft
    }

    /// The app of a bundle that cannot be used, with only the keys that the machine's owner sets. Errors in these keys
    /// are not reported here, because they were reported earlier.
    private func refused(_ app: BundledApp, _ folder: String, _ why: String) -> AppDraft {
        app.origin.warning("the bundle \(quoted(app.name)) cannot be used, so the app is not launched: \(why)")
        return owned(app, folder, DiagnosticSink())
    }

    /// The app of a bundle whose manifest cannot be read now, with only the keys that the machine's owner sets. In the
    /// configuration's sources, an empty file replaces the manifest. A launch of the app tries to read the manifest
    /// again.
    private mutating func unread(_ app: BundledApp, _ folder: String, _ why: String) -> AppDraft {
        app.origin.warning("the bundle \(quoted(app.name)) cannot be read now, and is tried again at a launch: \(why)")
        let path = supervisor.stateDirectory + InstalledManifest.end(of: app.name)
        if files.count < Self.countLimit, !files.contains(where: { $0.path == path }) {
            files.append(ConfigurationSources.File(path: path, text: []))
        }
        var draft = owned(app, folder, DiagnosticSink())
        draft.specification.bundle?.isUnread = true
        return draft
    }

    /// The first error with its place, and the number of errors after it.
    private func first(of sink: DiagnosticSink) -> String {
        let errors = sink.sorted.filter { $0.severity == .error }
        guard let first = errors.first else { return "" }
        let more = errors.count > 1 ? " (and \(errors.count - 1) more)" : ""
        return "\(first.file):\(first.line): \(first.path.isEmpty ? "" : first.path + ": ")\(first.message)\(more)"
    }
}
