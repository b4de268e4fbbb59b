// SPDX-License-Identifier: Apache-2.0

package import Engine
import Lifecycle
package import Linux
package import Processes

/// What state archives and snapshots need of the rest of the supervisor, and no more.
package protocol ArchiveHost: AnyObject {
    /// The folder of what outlives the boot.
    var stateFolder: String { get }
    /// Whether it is the full name of a scene inside an app.
    func isScene(named name: String) -> Bool
    /// The number of an app's user; nil when it cannot be found.
    func userID(of app: AppRuntime) -> UInt32?
    /// Whom an app runs as; nil for the supervisor's own user.
    ///
    /// - Throws: ``LaunchError`` when that user cannot be found.
    func user(of app: AppRuntime) throws(LaunchError) -> User?
    /// Runs a command as the app's user, in its directory, and hears how it ended. What it writes goes into `output`.
    func runCommand(
        _ app: AppRuntime,
        _ command: [String],
        output: Descriptor,
        started: @escaping (Descriptor) -> Void,
        completion: @escaping (Result<ExitStatus, LaunchError>) -> Void
    )
}
