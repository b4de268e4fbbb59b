// SPDX-License-Identifier: Apache-2.0

import CLinux

/// What a descriptor is watched for, and what became of it.
public struct IOEvents: OptionSet, Hashable, Sendable {
    /// The bits of epoll(7).
    public let rawValue: UInt32
    /// The bits of epoll(7).
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    /// There is something to read, or the end.
    public static let readable = IOEvents(rawValue: tlx_epollin)
    /// There is room to write.
    public static let writable = IOEvents(rawValue: tlx_epollout)
    /// The other side is gone; always reported.
    public static let hangup = IOEvents(rawValue: tlx_epollhup)
    /// An error waits; always reported.
    public static let error = IOEvents(rawValue: tlx_epollerr)
    /// The other side writes no more.
    public static let peerClosed = IOEvents(rawValue: tlx_epollrdhup)
    /// Something out of the ordinary: PSI triggers, cgroup.events, mount tables.
    public static let priority = IOEvents(rawValue: tlx_epollpri)
    /// Reported once for each change, not as long as it lasts.
    public static let edgeTriggered = IOEvents(rawValue: tlx_epollet)
}

/// An epoll instance: many descriptors behind one.
public final class Poller {
    /// The descriptor of the instance, readable while one of its own is ready.
    public let descriptor: Descriptor
    private var buffer = [tlx_epoll_event](repeating: tlx_epoll_event(), count: 256)

    /// An empty one.
    public init() throws(Errno) { descriptor = Descriptor(owning: try call { tlx_epoll_create() }) }

    /// Watches `fd`; `tag` comes back with its events. EPERM for regular files and directories.
    public func add(_ fd: Int32, _ events: IOEvents, tag: UInt64) throws(Errno) {
        try call { tlx_epoll_ctl(descriptor.raw, 1, fd, events.rawValue, tag) }
    }

    /// Changes what `fd` is watched for.
    public func modify(_ fd: Int32, _ events: IOEvents, tag: UInt64) throws(Errno) {
        try call { tlx_epoll_ctl(descriptor.raw, 3, fd, events.rawValue, tag) }
    }

    /// Watches `fd` no more.
    public func remove(_ fd: Int32) throws(Errno) { try call { tlx_epoll_ctl(descriptor.raw, 2, fd, 0, 0) } }

    /// Hands up to 256 ready descriptors to `body`, without waiting; returns how many.
    @discardableResult
    public func drain(_ body: (UInt64, IOEvents) -> Void) throws(Errno) -> Int {
        let count = Int(try call { tlx_epoll_wait(descriptor.raw, &buffer, Int32(buffer.count), 0) })
        for index in 0..<count { body(buffer[index].data, IOEvents(rawValue: buffer[index].events)) }
        return count
    }
}
