// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

/// News of files and directories (inotify(7)).
public final class Inotify {
    /// What is told, and what of it is asked for.
    public struct Events: OptionSet, Sendable, Hashable {
        /// As inotify has them.
        public let rawValue: UInt32

        /// As inotify has them.
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// It was written to.
        public static let modified = Events(rawValue: UInt32(IN_MODIFY))
        /// Its owner, mode, times or number of names changed.
        public static let attributes = Events(rawValue: UInt32(IN_ATTRIB))
        /// Who had it open for writing closed it.
        public static let writtenAndClosed = Events(rawValue: UInt32(IN_CLOSE_WRITE))
        /// A name in the directory was made.
        public static let created = Events(rawValue: UInt32(IN_CREATE))
        /// A name in the directory was removed.
        public static let deleted = Events(rawValue: UInt32(IN_DELETE))
        /// A name was moved out of the directory.
        public static let movedAway = Events(rawValue: UInt32(IN_MOVED_FROM))
        /// A name was moved into the directory.
        public static let movedHere = Events(rawValue: UInt32(IN_MOVED_TO))
        /// It was removed itself, and nobody has it open.
        public static let selfDeleted = Events(rawValue: UInt32(IN_DELETE_SELF))
        /// It was moved itself.
        public static let selfMoved = Events(rawValue: UInt32(IN_MOVE_SELF))
        /// Its filesystem was unmounted; told unasked.
        public static let unmounted = Events(rawValue: UInt32(IN_UNMOUNT))
        /// Nothing more is told of it; told unasked.
        public static let ignored = Events(rawValue: UInt32(IN_IGNORED))
        /// More happened than there was room for; told unasked, with −1 for the watch.
        public static let overflowed = Events(rawValue: UInt32(IN_Q_OVERFLOW))

        /// A name in a directory came or went.
        public static let names: Events = [.created, .deleted, .movedAway, .movedHere]
        /// It is where it was no more.
        public static let selfGone: Events = [.selfDeleted, .selfMoved]
    }

    /// One piece of news.
    public struct News: Sendable, Hashable {
        /// Which watch told it; −1 for all.
        public let watch: Int32
        /// What happened.
        public let events: Events
        /// The name in the directory; nil where it is the watched file itself.
        public let name: String?
    }

    /// To be watched for reading; `drain` or `read` takes what is there.
    public let descriptor: Descriptor

    /// One that watches nothing yet.
    public init() throws(Errno) {
        descriptor = Descriptor(owning: try call { inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK)) })
    }

    /// Tells when a name in the directory goes, or the directory itself.
    public func watchRemovals(of directory: String) throws(Errno) {
        let events = IN_DELETE | IN_DELETE_SELF | IN_MOVED_FROM | IN_MOVE_SELF | IN_ONLYDIR
        try call { inotify_add_watch(descriptor.raw, directory, UInt32(events)) }
    }

    /// Takes all news; which they are has to be looked for.
    public func drain() {
        while let bytes = try? Descriptor.read(descriptor.raw, maximum: 4096), !bytes.isEmpty {}
    }

    /// Watches what is at a path, a link itself, for these events beside those that it is watched for already. The number
    /// is the same for each name of a file. May wait for a disk or a server.
    public static func watch(_ inotify: Int32, _ path: String, _ events: Events) throws(Errno) -> Int32 {
        let flags = events.rawValue | UInt32(IN_DONT_FOLLOW) | UInt32(IN_MASK_ADD)
        return try call { inotify_add_watch(inotify, path, flags) }
    }

    /// Watches what is open, also as a place only or a link itself. EACCES where this thread may not read it.
    public static func watch(_ inotify: Int32, node: Int32, _ events: Events) throws(Errno) -> Int32 {
        let flags = events.rawValue | UInt32(IN_MASK_ADD)
        return try call { inotify_add_watch(inotify, "/proc/self/fd/\(node)", flags) }
    }

    /// Ends a watch.
    public func unwatch(_ watch: Int32) { _ = inotify_rm_watch(descriptor.raw, watch) }

    /// Takes what is there, at most so many bytes of it.
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

/// Patterns of names, as the shell has them (glob(7)).
public enum NamePattern {
    /// Whether there is anything in it that stands for other than itself.
    public static func isPattern(_ text: String) -> Bool {
        text.utf8.contains { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "[") }
    }

    /// Whether a name, or a whole path, fits: no part of the pattern fits `/`, and `*` no dot at the beginning of a name.
    public static func fits(_ text: String, path pattern: String) -> Bool {
        fnmatch(pattern, text, Int32(FNM_PATHNAME) | Int32(FNM_PERIOD)) == 0
    }

    /// The same for a name as the kernel gives it.
    public static func fits(_ name: UnsafePointer<CChar>, path pattern: String) -> Bool {
        fnmatch(pattern, name, Int32(FNM_PATHNAME) | Int32(FNM_PERIOD)) == 0
    }

    /// Whether any text fits, in which no character is special.
    public static func fits(_ text: String, _ pattern: String) -> Bool { fnmatch(pattern, text, 0) == 0 }
}
