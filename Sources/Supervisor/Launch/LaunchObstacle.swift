// SPDX-License-Identifier: Apache-2.0

package import Configuration
import Engine
import Linux
import SystemPackage

/// Why an app cannot be launched with a configuration, as far as that can be known before its present run is ended.
package enum LaunchObstacle {
    /// The obstacles, by the names of the apps that have one. Looks up users and paths, which may block.
    package static func find(_ specifications: [AppSpecification]) -> [String: String] {
        var found: [String: String] = [:]
        for specification in specifications { found[specification.name] = find(specification) }
        return found
    }

    private static func find(_ specification: AppSpecification) -> String? {
        do throws(LaunchError) {
            let account = try Account.Names(specification).map { names throws(LaunchError) in try Account.find(names) }
            let directory = Launcher.directory(of: specification, account?.user)
            if isKnown(directory), let problem = problem(ofDirectory: directory, account?.fileRights) { return problem }
            // The commands of before_start may make the program, and the files with variables.
            guard specification.beforeStart.isEmpty, specification.exec.first.map(isKnown) ?? true else { return nil }
            let facts = try LaunchFacts.find(specification)
            return specification.container == nil ? problem(ofProgram: facts.executable, account?.fileRights) : nil
        } catch {
            return error.description
        }
    }

    /// Whether a text has no settings, whose values are known only at the launch.
    private static func isKnown(_ text: String) -> Bool { SettingTemplate.names(in: text).isEmpty }

    private static func problem(ofDirectory path: String, _ rights: FileRights?) -> String? {
        do throws(Errno) {
            let isFolder = try FileRights.status(path, as: rights).kind == .directory
            return isFolder ? nil : "could not enter its directory \(path): it is not a folder"
        } catch {
            // Other errors may be those of these rights, and not of the launch.
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
