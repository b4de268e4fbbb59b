// SPDX-License-Identifier: Apache-2.0

import CLinux

/// Reports when a network interface is added, removed or changed (rtnetlink(7)).
public struct LinkWatch: ~Copyable {
    /// The descriptor to watch. After interfaces have changed, it is readable until ``hasNews()`` is called.
    public let descriptor: Descriptor

    /// Starts to watch the interfaces of this process's network namespace.
    public init() throws(Errno) { descriptor = Descriptor(owning: try call { tlx_link_socket() }) }

    /// Whether an interface may have changed since the last call.
    public func hasNews() throws(Errno) -> Bool { try call { tlx_link_news(descriptor.raw) } > 0 }
}
