// SPDX-License-Identifier: Apache-2.0

import CLinux

/// Notices when a network interface is added, removed or changed (rtnetlink(7)).
public struct LinkWatch: ~Copyable {
    /// The descriptor to watch, which is readable after interfaces have changed, until ``hasNews()`` is called.
    public let descriptor: Descriptor

    /// Starts to watch this process's network namespace.
    public init() throws(Errno) { descriptor = Descriptor(owning: try call { tlx_link_socket() }) }

    /// Whether an interface may have changed since the last call.
    public func hasNews() throws(Errno) -> Bool { try call { tlx_link_news(descriptor.raw) } > 0 }
}
