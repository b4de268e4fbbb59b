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
            let open = ([state] + (isReadOnly ? [] : [runtime] + configuration)).first { Self.covers(path, $0) }
            guard let open else { continue }
            draft.warning(
                "permissions",
                "\(quoted(declaration.name)) opens \(open), which torpord itself keeps: the app could "
                    + (isReadOnly ? "read what is stored of all apps" : "change it, and so leave its sandbox")
                    + "; name the folders that it needs, or write user"
            )
        }
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
