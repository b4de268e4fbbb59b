// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

/// An instance of inotify(7), which watches files and directories.
public final class Inotify {
    /// The events to watch for, or the events that occurred.
    public struct Events: OptionSet, Sendable, Hashable {
        /// The bits of inotify.
        public let rawValue: UInt32

        /// Wraps the bits of inotify.
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// The file was written to.
        public static let modified = Events(rawValue: UInt32(IN_MODIFY))
        /// The owner, mode, times or number of hard links changed.
        public static let attributes = Events(rawValue: UInt32(IN_ATTRIB))
        /// A descriptor that was open for writing was closed.
        public static let writtenAndClosed = Events(rawValue: UInt32(IN_CLOSE_WRITE))
        /// A name was created in the directory.
        public static let created = Events(rawValue: UInt32(IN_CREATE))
        /// A name was removed from the directory.
        public static let deleted = Events(rawValue: UInt32(IN_DELETE))
        /// A name was moved out of the directory.
        public static let movedAway = Events(rawValue: UInt32(IN_MOVED_FROM))
        /// A name was moved into the directory.
        public static let movedHere = Events(rawValue: UInt32(IN_MOVED_TO))
        /// The watched file itself was removed, and no process has it open.
        public static let selfDeleted = Events(rawValue: UInt32(IN_DELETE_SELF))
        /// The watched file itself was moved.
        public static let selfMoved = Events(rawValue: UInt32(IN_MOVE_SELF))
        /// The filesystem of the watched file was unmounted; reported even if not requested.
        public static let unmounted = Events(rawValue: UInt32(IN_UNMOUNT))
        /// The watch was removed; reported even if not requested.
        public static let ignored = Events(rawValue: UInt32(IN_IGNORED))
        /// Events were lost because the queue was full. Reported even if not requested, with −1 as the watch.
        public static let overflowed = Events(rawValue: UInt32(IN_Q_OVERFLOW))

        /// A name in a directory was added or removed.
        public static let names: Events = [.created, .deleted, .movedAway, .movedHere]
        /// The watched file is no longer at its path.
        public static let selfGone: Events = [.selfDeleted, .selfMoved]
    }

    /// One event.
    public struct News: Sendable, Hashable {
        /// The watch descriptor; −1 if the event does not belong to a single watch.
        public let watch: Int32
        /// The event's bits.
        public let events: Events
        /// The name in the directory; nil if the event is about the watched file itself.
        public let name: String?
    }

    /// The inotify descriptor, which is readable while events are queued; `drain` or `read` dequeues them.
    public let descriptor: Descriptor

    /// Creates an inotify instance without watches.
    public init() throws(Errno) {
        descriptor = Descriptor(owning: try call { inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK)) })
    }

    /// Watches a directory, and reports when a name in it, or the directory itself, is removed or moved away.
    public func watchRemovals(of directory: String) throws(Errno) {
        let events = IN_DELETE | IN_DELETE_SELF | IN_MOVED_FROM | IN_MOVE_SELF | IN_ONLYDIR
        try call { inotify_add_watch(descriptor.raw, directory, UInt32(events)) }
    }

    /// Discards all queued events. The caller must then check itself what has changed.
    public func drain() {
        while let bytes = try? Descriptor.read(descriptor.raw, maximum: 4096), !bytes.isEmpty {}
    }

    /// Watches the file at a path for these events, in addition to the events for which it is already watched. If the
    /// path is a symlink, the symlink itself is watched, not its target. All hard links of a file share one watch
    /// descriptor. May block on a disk or a server.
    public static func watch(_ inotify: Int32, _ path: String, _ events: Events) throws(Errno) -> Int32 {
        let flags = events.rawValue | UInt32(IN_DONT_FOLLOW) | UInt32(IN_MASK_ADD)
        return try call { inotify_add_watch(inotify, path, flags) }
    }

    /// Watches an open file for these events. A descriptor opened with O_PATH is enough, even for a symlink. Throws
    /// EACCES if this thread may not read the file.
    public static func watch(_ inotify: Int32, node: Int32, _ events: Events) throws(Errno) -> Int32 {
        let flags = events.rawValue | UInt32(IN_MASK_ADD)
        return try call { inotify_add_watch(inotify, "/proc/self/fd/\(node)", flags) }
    }

    /// Removes a watch.
    public func unwatch(_ watch: Int32) { _ = inotify_rm_watch(descriptor.raw, watch) }

    /// Reads queued events, with a total size of at most `maximum` bytes.
    public func read(maximum: Int = 16 << 10) -> [News] {
        guard let bytes = try? Descriptor.read(descriptor.raw, maximum: maximum) else { return [] }
        var news: [News] = []
        bytes.withUnsafeBytes { buffer in
            let head = MemoryLayout<inotify_event>.size
            var at = 0
            while at + head <= buffer.count {
                let watch = buffer.loadUnaligned(fromByteOffset: at, as: Int32.self)
                let mask = buffer.loadUnaligned(fromByteOffset: at + 4, as: UInt32.self)
                let length = Int(buffer.loadUnaligned(fromByteOffset: at + 12, as: UInt32.self))
                at += head
                guard at + length <= buffer.count else { break }
                let name = buffer[at..<(at + length)].prefix { $0 != 0 }
                let text = name.isEmpty ? nil : String(wire: name)
                news.append(News(watch: watch, events: Events(rawValue: mask), name: text))
                at += length
            }
        }
        return news
    }
}

/// Shell patterns for names (glob(7)).
public enum NamePattern {
    /// Whether a text contains a wildcard.
    public static func isPattern(_ text: String) -> Bool {
        text.utf8.contains { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "[") }
    }

    /// Whether a name or path matches a pattern. Wildcards do not match `/`, and `*` does not match a leading dot.
    public static func fits(_ text: String, path pattern: String) -> Bool {
        fnmatch(pattern, text, Int32(FNM_PATHNAME) | Int32(FNM_PERIOD)) == 0
    }

    /// Whether a C string matches a pattern. Wildcards do not match `/`, and `*` does not match a leading dot.
    public static func fits(_ name: UnsafePointer<CChar>, path pattern: String) -> Bool {
        fnmatch(pattern, name, Int32(FNM_PATHNAME) | Int32(FNM_PERIOD)) == 0
    }

    /// Whether a text matches a pattern. Here, wildcards also match `/` and leading dots.
    public static func fits(_ text: String, _ pattern: String) -> Bool { fnmatch(pattern, text, 0) == 0 }
}
