// SPDX-License-Identifier: Apache-2.0

import CLinux

/// The events to watch a descriptor for, or the events that occurred.
public struct IOEvents: OptionSet, Hashable, Sendable {
    /// The events as bits of epoll(7).
    public let rawValue: UInt32
    /// Wraps bits of epoll(7).
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    /// There is data to read, or the end of the file was reached.
    public static let readable = IOEvents(rawValue: tlx_epollin)
    /// There is space to write.
    public static let writable = IOEvents(rawValue: tlx_epollout)
    /// The peer has hung up; reported even if not requested.
    public static let hangup = IOEvents(rawValue: tlx_epollhup)
    /// An error is pending; reported even if not requested.
    public static let error = IOEvents(rawValue: tlx_epollerr)
    /// The peer has shut down its sending side.
    public static let peerClosed = IOEvents(rawValue: tlx_epollrdhup)
    /// An exceptional condition, which PSI triggers, cgroup.events and mount tables use to report a change.
    public static let priority = IOEvents(rawValue: tlx_epollpri)
    /// Report each change only once (edge-triggered).
    public static let edgeTriggered = IOEvents(rawValue: tlx_epollet)
}

/// An epoll instance.
public final class Poller {
    /// The descriptor of the epoll instance, readable while a watched descriptor is ready.
    public let descriptor: Descriptor
    private var buffer = [tlx_epoll_event](repeating: tlx_epoll_event(), count: 256)

    /// Creates an epoll instance that watches no descriptors.
    public init() throws(Errno) { descriptor = Descriptor(owning: try call { tlx_epoll_create() }) }

    /// Watches `fd` and reports its events with `tag`. Throws EPERM for regular files and directories.
    public func add(_ fd: Int32, _ events: IOEvents, tag: UInt64) throws(Errno) {
        try call { tlx_epoll_ctl(descriptor.raw, 1, fd, events.rawValue, tag) }
    }

    /// Changes the events that `fd` is watched for.
    public func modify(_ fd: Int32, _ events: IOEvents, tag: UInt64) throws(Errno) {
        try call { tlx_epoll_ctl(descriptor.raw, 3, fd, events.rawValue, tag) }
    }

    /// Stops watching `fd`.
    public func remove(_ fd: Int32) throws(Errno) { try call { tlx_epoll_ctl(descriptor.raw, 2, fd, 0, 0) } }

    /// Calls `body` for up to 256 ready descriptors, without blocking. Returns their number.
    @discardableResult
    public func drain(_ body: (UInt64, IOEvents) -> Void) throws(Errno) -> Int {
        let count = Int(try call { tlx_epoll_wait(descriptor.raw, &buffer, Int32(buffer.count), 0) })
        for index in 0..<count { body(buffer[index].data, IOEvents(rawValue: buffer[index].events)) }
        return count
    }
}
