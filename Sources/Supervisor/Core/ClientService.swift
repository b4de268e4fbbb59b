// SPDX-License-Identifier: Apache-2.0

package import Engine
package import Linux
package import VarlinkServer

/// Answers clients of the control socket. The supervisor starts and stops it and never queries it: the service uses every
/// room, and no room uses the service.
package protocol ClientService: LifecycleObserver {
    /// The control socket; nil while there is none.
    var listener: Descriptor? { get }

    /// Accepts clients from now on. No call is answered before the loop runs.
    ///
    /// - Parameter held: the socket of an earlier torpord. If its path is gone, clients cannot find it: a new one is
    ///   made.
    func listen(taking held: Descriptor?) throws(VarlinkServerError)
    /// Makes the control socket again after its path was removed.
    func listenAgain() throws(VarlinkServerError)
    /// The first launches have begun: checks the calls that wait for a state.
    func begin()
    /// Applies the configuration on disk.
    ///
    /// - Parameter asker: the requester, as the log names it.
    func apply(by asker: String)
    /// Drops all clients. The socket stays for the next torpord, or its path is removed.
    func close(leavingSocket: Bool)
}
