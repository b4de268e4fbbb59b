// SPDX-License-Identifier: Apache-2.0

import CLinux

/// Reports when the machine gets a new route, for example because a cable is plugged in or a VPN connects
/// (rtnetlink(7)).
public struct RouteWatch: ~Copyable {
    /// The descriptor to watch. After routes have changed, it is readable until ``hasNews()`` is called.
    public let descriptor: Descriptor

    /// Starts to watch the routes of this process's network namespace.
    public init() throws(Errno) { descriptor = Descriptor(owning: try call { tlx_route_socket() }) }

    /// Whether a route was added since the last call. Also true if notifications may have been lost.
    public func hasNews() throws(Errno) -> Bool { try call { tlx_route_news(descriptor.raw) } > 0 }
}
