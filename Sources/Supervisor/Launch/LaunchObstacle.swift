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
    package static func find(
        _ specifications: [AppSpecification],
        sockets: [String: [SocketPlan]] = [:],
        own: Set<UInt32> = []
    ) -> [String: String] {
        var found: [String: String] = [:]
        for specification in specifications { found[specification.name] = find(specification) }
        guard sockets.values.contains(where: { !$0.isEmpty }), let all = try? TCPListener.all() else { return found }
        let others = all.filter { !own.contains($0.inode) }
        for (name, plans) in sockets where found[name] == nil {
            guard let plan = plans.first(where: { plan in others.contains { $0.blocks(plan) } }) else { continue }
            found[name] = "cannot listen at \(plan.address): the address is in use: ‘ss -lnp’ shows by which process"
        }
        return found
    }

    private static func find(_ specification: AppSpecification) -> String? {
        do throws(LaunchError) {
            let account = try Account.Names(specification).map { names throws(LaunchError) in try Account.find(names) }
            let directory = Launcher.directory(of: specification, account?.user)
            if isKnown(directory), let problem = problem(ofDirectory: directory, account?.fileRights) { return problem }
            // Do not check the program if it may not exist yet: commands of before_start may create it, and the
            // environment files.
            guard specification.beforeStart.isEmpty, specification.exec.first.map(isKnown) ?? true else { return nil }
            let facts = try LaunchFacts.find(specification)
            return specification.container == nil ? problem(ofProgram: facts.executable, account?.fileRights) : nil
        } catch {
            return error.description
        }
    }

    /// Whether the value of a text is known before the launch: the text contains no names of settings, whose values are
    /// known only at the launch.
    private static func isKnown(_ text: String) -> Bool { SettingTemplate.names(in: text).isEmpty }

    private static func problem(ofDirectory path: String, _ rights: FileRights?) -> String? {
        do throws(Errno) {
            let isFolder = try FileRights.status(path, as: rights).kind == .directory
            return isFolder ? nil : "could not enter its directory \(path): it is not a folder"
        } catch {
            // Other errors may be caused by the rights of this check, and need not affect the launch.
            guard error == .noSuchFileOrDirectory || error == .notDirectory else { return nil }
            return "could not enter its directory \(path): \(error)"
        }
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
