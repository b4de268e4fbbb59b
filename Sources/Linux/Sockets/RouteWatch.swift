// SPDX-License-Identifier: Apache-2.0

import CLinux

/// Hears when the machine gets a way to other machines that it did not have (rtnetlink(7)): a cable, a radio link, a tunnel.
public struct RouteWatch: ~Copyable {
    /// Readable when routes have changed, until ``hasNews()``.
    public let descriptor: Descriptor

    /// From now on, in this network namespace.
    public init() throws(Errno) { descriptor = Descriptor(owning: try call { tlx_route_socket() }) }

    /// Whether there is a new way since this was asked last. That some news may have been lost counts as one.
    public func hasNews() throws(Errno) -> Bool { try call { tlx_route_news(descriptor.raw) } > 0 }
}
