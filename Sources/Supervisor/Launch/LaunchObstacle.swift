// SPDX-License-Identifier: Apache-2.0

package import Configuration
import Engine
package import Linux
import SystemPackage

/// The reason why an app could not be launched with a new configuration, found before the app's current run is ended.
package enum LaunchObstacle {
    /// The obstacles, by app name; apps without an obstacle are not included. Looks up users and paths, which may
    /// block.
    ///
    /// - Parameters:
    ///   - sockets: the sockets, by app, that can be bound only when the app has ended.
    ///   - own: the inode numbers of the sockets that torpord has bound.
    ///   - state: torpord's state folder, in which a launch gives an app's folders to the app's user.
    package static func find(
        _ specifications: [AppSpecification],
        sockets: [String: [SocketPlan]] = [:],
        own: Set<UInt32> = [],
        state: String
    ) -> [String: String] {
        var found: [String: String] = [:]
        for specification in specifications { found[specification.name] = find(specification, state) }
        guard sockets.values.contains(where: { !$0.isEmpty }), let all = try? TCPListener.all() else { return found }
        let others = all.filter { !own.contains($0.inode) }
        for (name, plans) in sockets where found[name] == nil {
            guard let plan = plans.first(where: { plan in others.contains { $0.blocks(plan) } }) else { continue }
            found[name] = "cannot listen at \(plan.address): the address is in use: ‘ss -lnp’ shows by which process"
        }
        return found
    }

    private static func find(_ specification: AppSpecification, _ state: String) -> String? {
        do throws(LaunchError) {
            let account = try Account.Names(specification).map { names throws(LaunchError) in try Account.find(names) }
            let directory = Launcher.directory(of: specification, account?.user)
            let isOwn = directory == state || directory.hasPrefix(state + "/")
            if isKnown(directory), let problem = problem(ofDirectory: directory, account?.fileRights, isOwn: isOwn) {
                return problem
            }
            // Do not check the program if it may not exist yet: commands of before_start may create it, and the
            // environment files.
            guard specification.beforeStart.isEmpty, specification.exec.first.map(isKnown) ?? true else { return nil }
            if let problem = problem(ofFiles: specification, account?.fileRights) { return problem }
            let facts = try LaunchFacts.find(specification)
            return specification.container == nil ? problem(ofProgram: facts.executable, account?.fileRights) : nil
        } catch {
            return error.description
        }
    }

    /// Whether the value of a text is known before the launch: the text contains no names of settings, whose values are
    /// known only at the launch.
    private static func isKnown(_ text: String) -> Bool { SettingTemplate.names(in: text).isEmpty }

    /// - Parameter isOwn: whether the launch may still give the directory to the app's user.
    private static func problem(ofDirectory path: String, _ rights: FileRights?, isOwn: Bool) -> String? {
        do throws(Errno) {
            guard try FileRights.status(path, as: rights).kind == .directory else {
                return "could not enter its directory \(path): it is not a folder"
            }
            // To find what is in a folder needs the same right as to enter it.
            _ = try FileRights.status(path + "/.", as: rights)
            return nil
        } catch {
            // Other errors may be caused by the rights of this check, and need not affect the launch.
            let isMissing = error == .noSuchFileOrDirectory || error == .notDirectory
            guard isMissing || error == .permissionDenied && rights != nil && !isOwn else { return nil }
            return "could not enter its directory \(path): \(error)"
        }
    }

    /// Checks the files of standard input and standard error that are opened as the app's user.
    private static func problem(ofFiles specification: AppSpecification, _ rights: FileRights?) -> String? {
        guard let rights else { return nil }
        var files: [(path: String, writing: Bool, what: String)] = []
        if case .file(let path) = specification.standardInput { files.append((path, false, "standard input")) }
        if case .file(let path) = specification.standardError { files.append((path, true, "standard error")) }
        for file in files where file.path.hasPrefix("/") && isKnown(file.path) && isOpenedAsUser(file.path) {
            do throws(Errno) {
                try FileRights.requireAccess(file.path, writing: file.writing, as: rights)
            } catch {
                guard error == .permissionDenied else { continue }
                return "could not open \(file.path), its \(file.what): \(error); non-root users may write to a folder "
                    + "on its path, so it is opened as the app's user, \(rights.name)"
            }
        }
        return nil
    }

    /// Whether torpor-keeper opens a file as the app's user, because other users than root and torpord's could have
    /// changed its path (files.c). False also if this is not certain: if the path has symlinks, or a folder is missing.
    private static func isOpenedAsUser(_ path: String) -> Bool {
        var folder = ""
        var mayAllAdd = false
        for name in path.split(separator: "/", omittingEmptySubsequences: false).dropLast() {
            folder += name.isEmpty ? "" : "/\(name)"
            guard let status = try? File.status(folder.isEmpty ? "/" : folder, followLinks: false),
                status.kind == .directory
            else { return false }
            mayAllAdd = status.mode & 0o022 != 0
            let isSticky = status.mode & 0o1000 != 0
            let isRoots = status.uid == 0 || status.uid == Users.effectiveUID
            if !isRoots || mayAllAdd && !isSticky { return true }
        }
        return mayAllAdd
    }

    private static func problem(ofProgram path: String, _ rights: FileRights?) -> String? {
        do throws(Errno) {
            let status = try FileRights.status(path, as: rights)
            if status.kind == .directory { return "could not run \(path) (exec): it is a folder" }
            return status.mode & 0o111 == 0 ? "could not run \(path) (exec): it needs chmod +x" : nil
        } catch {
            guard error == .noSuchFileOrDirectory || error == .notDirectory else { return nil }
            return "could not run \(path) (exec): \(error)"
        }
    }
}
