// SPDX-License-Identifier: Apache-2.0

import CLinux

/// Notices when the machine gains a route, through a cable, a radio link or a tunnel (rtnetlink(7)).
public struct RouteWatch: ~Copyable {
    /// The descriptor to watch, which is readable after routes have changed, until ``hasNews()`` is called.
    public let descriptor: Descriptor

    /// Starts to watch the routes of this process's network namespace.
    public init() throws(Errno) { descriptor = Descriptor(owning: try call { tlx_route_socket() }) }

    /// Whether a route was added since the last call, or notifications may have been lost.
    public func hasNews() throws(Errno) -> Bool { try call { tlx_route_news(descriptor.raw) } > 0 }
}
