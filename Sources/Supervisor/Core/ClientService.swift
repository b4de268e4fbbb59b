// SPDX-License-Identifier: Apache-2.0

package import Engine
package import Linux
package import VarlinkServer

/// Serves the clients of the control socket. The supervisor starts and stops this service and never queries it, because
/// the service uses all other parts of the supervisor, and none of these parts uses the service.
package protocol ClientService: LifecycleObserver {
    /// The control socket; nil while there is none.
    var listener: Descriptor? { get }

    /// Accepts clients from now on. Calls are answered only once the event loop runs.
    ///
    /// - Parameter held: the listening socket of an earlier torpord; nil if there is none. It is used only if its
    ///   path still exists, since clients could not find it otherwise.
    func listen(taking held: Descriptor?) throws(VarlinkServerError)
    /// Makes the control socket again after its path was removed.
    func listenAgain() throws(VarlinkServerError)
    /// Called when the first launches have begun. Checks the calls of clients that wait for an app to reach a state.
    func begin()
    /// Applies the configuration on disk.
    ///
    /// - Parameter asker: the requester, as the log names it.
    func apply(by asker: String)
    /// Applies the configuration in force again, but reads the bundle's manifest from the disk. Calls `completion` when
    /// that is done or was refused.
    func take(bundle name: String, by asker: String, _ completion: @escaping () -> Void)
    /// Drops all clients. If `leavingSocket`, the socket's path is kept for the next torpord; otherwise it is removed.
    func close(leavingSocket: Bool)
}
