// SPDX-License-Identifier: Apache-2.0

package import Engine
import Lifecycle
package import Linux
package import Processes

/// What state archives and snapshots need from the rest of the supervisor.
package protocol ArchiveHost: AnyObject {
    /// The folder on disk for data that survives a reboot.
    var stateFolder: String { get }
    /// Whether `name` is the full name of a scene inside an app.
    func isScene(named name: String) -> Bool
    /// The names of the scenes inside an app.
    func sceneNames(of app: AppRuntime) -> [String]
    /// The user id of an app's user; nil if that user is not found.
    func userID(of app: AppRuntime) -> UInt32?
    /// The user that an app runs as; nil for torpord's own user.
    ///
    /// - Throws: ``LaunchError`` when the user in the configuration is not found.
    func user(of app: AppRuntime) throws(LaunchError) -> User?
    /// Runs a command as the app's user in the app's directory, with its output to `output`; reports how it ended.
    func runCommand(
        _ app: AppRuntime,
        _ command: [String],
        output: Descriptor,
        started: @escaping (Descriptor) -> Void,
        completion: @escaping (Result<ExitStatus, LaunchError>) -> Void
    )
}
