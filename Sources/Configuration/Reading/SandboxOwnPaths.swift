// SPDX-License-Identifier: Apache-2.0

import Permissions
import WireText

/// The paths that torpord itself uses. A sandboxed app should not have access to them.
struct SandboxOwnPaths {
    /// `state_directory`, which contains the stored data of all apps.
    let state: String
    /// `runtime_directory`, which contains torpord's sockets.
    let runtime: String
    /// `log_directory`, which contains the output of all apps.
    let log: String
    /// The paths of the configuration's files.
    let configuration: [String]

    /// Warns if a permission of the app gives access to one of these paths, or, through /proc, to files of other
    /// processes.
    func check(_ app: AppSpecification, _ draft: AppDraft) {
        for declaration in app.sandbox.declarations {
            guard case .files(let path, let isReadOnly) = declaration.permission else { continue }
            if Self.entersProcess(path) {
                draft.warning(
                    "permissions",
                    "\(quoted(declaration.name)) leads through /proc to files that are open in other processes, or to "
                        + "their whole file system, perhaps torpord's: name the files themselves"
                )
                continue
            }
            let below = [state] + (isReadOnly ? [] : [runtime, log] + configuration + keys)
            let around = isReadOnly ? [] : [state + "/bundles", log] + keys
            let open = below.first { Self.covers(path, $0) } ?? around.first { Self.covers($0, isAbove: path) }
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

    /// Why a permission that a bundle's manifest requests is not granted, as the rest of a sentence that begins with
    /// the permission; nil if it is granted.
    ///
    /// Read access to a folder that contains one of torpord's own paths, such as `/`, is granted, but ``check(_:_:)``
    /// warns of it, as for every app. Paths that lead to torpord's own files through symlinks or mounts are found at
    /// launch.
    func obstacle(to permission: Permission) -> String? {
        guard case .files(let path, let isReadOnly) = permission else { return nil }
        if Self.entersProcess(path) { return "leads through /proc to what other processes have open" }
        let reached = ([state, runtime, log] + keys + configuration).first { own in
            Self.covers(own, isAbove: path) || !isReadOnly && Self.covers(path, own)
        }
        return reached.map { "reaches \($0), where torpord itself keeps files" }
    }

    // MARK: Patterns

    /// Names in `/proc/PID` through which other files can be reached, because they are symlinks or folders of symlinks.
    private static let waysOut = ["root", "cwd", "exe", "fd", "map_files", "task"]

    /// Whether a path or pattern may match, below `/proc/PID`, a file that a process has open.
    private static func entersProcess(_ pattern: String) -> Bool {
        let wanted = parts(pattern)
        guard wanted.count > 2, mayMatch(wanted[0], "proc"), mayNameProcess(wanted[1]) else { return false }
        return waysOut.contains { mayMatch(wanted[2], $0) }
    }

    /// Whether a path component may match the folder of a process in `/proc`. The name of such a folder is a number,
    /// `self` or `thread-self`.
    private static func mayNameProcess(_ component: String) -> Bool {
        let isNumber = component.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        let hasWildcard = component.utf8.contains { "*?[{".utf8.contains($0) }
        return isNumber || hasWildcard || mayMatch(component, "self") || mayMatch(component, "thread-self")
    }

    /// Whether `pattern` is `folder` itself, or may match a path inside it.
    private static func covers(_ folder: String, isAbove pattern: String) -> Bool {
        let wanted = parts(pattern)
        return spellings(folder).contains { names in
            wanted.count >= names.count && zip(wanted, names).allSatisfy { mayMatch($0, $1) }
        }
    }

    /// Whether a path or pattern matches `path` itself, or a folder that contains it.
    static func covers(_ pattern: String, _ path: String) -> Bool {
        let wanted = parts(pattern)
        return spellings(path).contains { names in
            wanted.count <= names.count
                && zip(wanted, names).allSatisfy { isUnclear($0) || Glob.matches($0, $1) }
        }
    }

    /// Whether a component of a pattern may match a name. A component with a placeholder in braces always matches,
    /// because its value differs between apps.
    private static func mayMatch(_ component: String, _ name: String) -> Bool {
        component.utf8.contains(UInt8(ascii: "{")) || isUnclear(component) || Glob.matches(component, name)
    }

    /// Whether `Glob` and fnmatch(3) may interpret a component differently, because it has a backslash, a class such as
    /// `[[:alpha:]]`, a negation by `^`, or a negation of `]`. Such a component counts as a match.
    private static func isUnclear(_ component: String) -> Bool {
        let bytes = Array(component.utf8)
        guard bytes.contains(where: { "*?[".utf8.contains($0) }) else { return false }
        if bytes.contains(UInt8(ascii: "\\")) { return true }
        return zip(bytes, bytes.dropFirst()).contains { first, second in
            if first == UInt8(ascii: "!") { return second == UInt8(ascii: "]") }
            return first == UInt8(ascii: "[") && "^:.=".utf8.contains(second)
        }
    }

    /// The components of a path. For a path in /run, returns both spellings, because /var/run is a symlink to /run.
    private static func spellings(_ path: String) -> [[String]] {
        let names = parts(path)
        if names.starts(with: ["run"]) { return [names, ["var"] + names] }
        if names.starts(with: ["var", "run"]) { return [names, Array(names.dropFirst())] }
        return [names]
    }

    private static func parts(_ path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
    }
}

extension TorporConfiguration {
    /// The paths that torpord itself uses: its folders, the keys that verify bundles, and the configuration's files.
    package var ownPaths: [String] {
        let files = sources.files.map { Path.join(sources.workingDirectory, $0.path) }
        let keys = files.first.map { [Path.folder($0) + "/keys"] } ?? []
        return [supervisor.stateDirectory, supervisor.runtimeDirectory, supervisor.logDirectory] + keys + files
    }
}
