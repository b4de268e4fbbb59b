// SPDX-License-Identifier: Apache-2.0

import Permissions
import WireText

/// The paths that torpord itself uses. A sandboxed app should not have access to them.
struct SandboxOwnPaths {
    /// `state_directory`, which contains the stored data of all apps.
    let state: String
    /// `runtime_directory`, which contains torpord's sockets.
    let runtime: String
    /// The paths of the configuration's files.
    let configuration: [String]

    /// Warns if a permission of the app gives access to one of the paths.
    func check(_ app: AppSpecification, _ draft: AppDraft) {
        for declaration in app.sandbox.declarations {
            guard case .files(let path, let isReadOnly) = declaration.permission else { continue }
            let open =
                ([state] + (isReadOnly ? [] : [runtime] + configuration + keys)).first { Self.covers(path, $0) }
                ?? [state + "/bundles"].first { !isReadOnly && Self.covers($0, isAbove: path) }
                ?? keys.first { !isReadOnly && Self.covers($0, isAbove: path) }
            guard let open else { continue }
            draft.warning(
                "permissions",
                "\(quoted(declaration.name)) opens \(open), which torpord itself keeps: the app could "
                    + (isReadOnly ? "read what is stored of all apps" : "change it, and so leave its sandbox")
                    + "; name the folders that it needs, or write user"
            )
        }
    }

    /// The folder of the keys whose bundles may run: beside the configuration file.
    private var keys: [String] { configuration.first.map { [Path.folder($0) + "/keys"] } ?? [] }

    /// What a permission that the manifest of a bundle asks for would open of torpord's own; nil if it opens none of it.
    ///
    /// A stranger's app may name a folder above all of it to read: that is a warning, as for every app.
    func reached(by permission: Permission) -> String? {
        guard case .files(let path, let isReadOnly) = permission else { return nil }
        return ([state, runtime] + keys + configuration).first { own in
            Self.covers(own, isAbove: path) || !isReadOnly && Self.covers(path, own)
        }
    }

    /// Whether a path or pattern may be that of a file, or of a place in a folder.
    private static func covers(_ folder: String, isAbove pattern: String) -> Bool {
        let (wanted, names) = (parts(pattern), parts(folder))
        // What a placeholder stands for is known for each instance alone.
        return wanted.count >= names.count
            && zip(wanted, names).allSatisfy { $0.utf8.contains(UInt8(ascii: "{")) || Glob.matches($0, $1) }
    }

    /// Whether a path or pattern matches this path, or a folder that contains it.
    static func covers(_ pattern: String, _ path: String) -> Bool {
        let (wanted, names) = (parts(pattern), parts(path))
        return wanted.count <= names.count && zip(wanted, names).allSatisfy { Glob.matches($0, $1) }
    }

    private static func parts(_ path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
    }
}
