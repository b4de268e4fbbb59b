// SPDX-License-Identifier: Apache-2.0

package import Engine
package import Linux
package import VarlinkServer

/// Whoever answers clients of the control socket. The supervisor says when, and asks nothing of it: it uses every room, and
/// none uses it.
package protocol ClientService: LifecycleObserver {
    /// The control socket; nil while there is none.
    var listener: Descriptor? { get }

    /// Clients may connect from now on. Nobody is answered before the loop runs.
    ///
    /// - Parameter held: the socket of an earlier torpord. Without its path nobody finds it: then a new one is made.
    func listen(taking held: Descriptor?) throws(VarlinkServerError)
    /// Makes the control socket again, whose path is gone.
    func listenAgain() throws(VarlinkServerError)
    /// The first launches are begun: what calls have waited for may be so.
    func begin()
    /// The configuration on disk is to be in force.
    ///
    /// - Parameter asker: who wants it, in the words of the log.
    func apply(by asker: String)
    /// No more clients. The socket stays for whoever takes it over, or its path is removed.
    func close(leavingSocket: Bool)
}
