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

    /// The folder beside the configuration file with the public keys that verify bundles.
    private var keys: [String] { configuration.first.map { [Path.folder($0) + "/keys"] } ?? [] }

    /// For a permission that a bundle's manifest asks for: the first of torpord's own paths to which it would give
    /// access; nil if there is none.
    ///
    /// Read access to a folder above such a path, such as `/`, does not count: ``check(_:_:)`` warns of it, as for
    /// every app.
    func reached(by permission: Permission) -> String? {
        guard case .files(let path, let isReadOnly) = permission else { return nil }
        return ([state, runtime] + keys + configuration).first { own in
            Self.covers(own, isAbove: path) || !isReadOnly && Self.covers(path, own)
        }
    }

    /// Whether `pattern` is `folder` itself, or may match a path inside it.
    private static func covers(_ folder: String, isAbove pattern: String) -> Bool {
        let (wanted, names) = (parts(pattern), parts(folder))
        // A component that contains a placeholder in braces counts as a match, since its value is known only for each
        // app.
        return wanted.count >= names.count
            && zip(wanted, names).allSatisfy { $0.utf8.contains(UInt8(ascii: "{")) || Glob.matches($0, $1) }
    }

    /// Whether a path or pattern matches `path` itself, or a folder that contains it.
    static func covers(_ pattern: String, _ path: String) -> Bool {
        let (wanted, names) = (parts(pattern), parts(path))
        return wanted.count <= names.count && zip(wanted, names).allSatisfy { Glob.matches($0, $1) }
    }

    private static func parts(_ path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
    }
}
