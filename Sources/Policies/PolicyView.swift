// SPDX-License-Identifier: Apache-2.0

import CPolicyWire
public import Linux
public import TorporPolicyABI
import WireText

/// The data that policies see: one record per app and one for the machine, in memory that host processes map
/// read-only.
///
/// The view is updated in place. It must not change while a policy is being asked: the caller delays changes until
/// the answer. Pages that are not in use take no memory.
public final class PolicyView {
    /// The maximum number of apps; the keeper launches no more than this either.
    public static let capacity = 16384
    private static let stringCapacity = 8 << 20
    private static let appSize = MemoryLayout<torpor_policy_app>.stride

    /// A memfd with the view, for host processes, which cannot write to it.
    public let descriptor: Descriptor
    /// The size of the mapping, in bytes.
    public let size: Int
    /// Pointers to the view, for policies in this process.
    public private(set) var pointers: torpor_policy_view

    private let mapping: Mapping
    private let header: UnsafeMutablePointer<torpor_policy_wire_view>
    private let machine: UnsafeMutablePointer<torpor_policy_system>
    private let apps: UnsafeMutablePointer<torpor_policy_app>
    private let strings: UnsafeMutablePointer<UInt8>

    /// Creates an empty view.
    ///
    /// - Throws: `Errno` if no memory or descriptor is left.
    public init() throws(Errno) {
        let appsOffset = 4096
        let stringsOffset = (appsOffset + Self.capacity * Self.appSize + 4095) / 4096 * 4096
        size = stringsOffset + Self.stringCapacity
        descriptor = try Memory.file(named: "torpor-policy-view", size: UInt64(size))
        mapping = try Mapping(descriptor: descriptor.raw, size: size, writable: true)
        try Memory.seal(descriptor.raw)
        // The mapping begins at a page boundary, and each part is aligned within it.
        let start = mapping.bytes.baseAddress!
        header = start.assumingMemoryBound(to: torpor_policy_wire_view.self)
        machine = (start + 256).assumingMemoryBound(to: torpor_policy_system.self)
        apps = (start + appsOffset).assumingMemoryBound(to: torpor_policy_app.self)
        strings = (start + stringsOffset).assumingMemoryBound(to: UInt8.self)
        machine.pointee.size = UInt32(MemoryLayout<torpor_policy_system>.size)
        machine.pointee.memory_some = UInt32.max
        machine.pointee.memory_full = UInt32.max
        machine.pointee.cpu_some = UInt32.max
        machine.pointee.io_some = UInt32.max
        machine.pointee.io_full = UInt32.max
        machine.pointee.battery = UInt32.max
        machine.pointee.measured_at = Int64.min
        header.pointee = torpor_policy_wire_view(
            version: TORPOR_POLICY_WIRE_VERSION,
            app_count: 0,
            app_size: UInt32(Self.appSize),
            app_capacity: UInt32(Self.capacity),
            system_offset: 256,
            apps_offset: UInt64(appsOffset),
            strings_offset: UInt64(stringsOffset),
            // The first string is empty: it is the name at all indices without an app.
            string_size: 1,
            string_capacity: UInt32(Self.stringCapacity)
        )
        pointers = torpor_policy_view(
            size: UInt32(MemoryLayout<torpor_policy_view>.size),
            app_count: 0,
            app_size: UInt32(Self.appSize),
            string_size: 1,
            system: UnsafePointer(machine),
            apps: UnsafeRawPointer(apps),
            strings: UnsafeRawPointer(strings).assumingMemoryBound(to: CChar.self)
        )
    }

    /// The highest index in use plus one; indices below it may have no app.
    public var count: Int { Int(header.pointee.app_count) }

    /// The machine's record.
    public var system: torpor_policy_system {
        get { machine.pointee }
        set {
            machine.pointee = newValue
            machine.pointee.size = UInt32(MemoryLayout<torpor_policy_system>.size)
        }
    }

    /// The record of the app at an index below ``count``. If no app has the index, the record is that of an app that
    /// never ran.
    public subscript(place: Int) -> torpor_policy_app {
        get {
            precondition(place < count)
            return apps[place]
        }
        _modify {
            precondition(place < count)
            yield &apps[place]
        }
    }

    /// Whether there is an app at the index.
    public func isPresent(_ place: Int) -> Bool {
        place >= 0 && place < count && apps[place].flags & Self.present != 0
    }

    private static let present: UInt32 = 1

    /// Puts an app at an index, with the record of an app that never ran. Returns false if there is no room.
    @discardableResult
    public func put(_ place: Int, name: String, tags: [String]) -> Bool {
        guard place >= 0, place < Self.capacity else { return false }
        if place >= count { setCount(place + 1) }
        apps[place] = Self.emptyApp
        guard let text = store([name] + tags) else { return false }
        apps[place].flags = Self.present
        apps[place].name = text
        apps[place].tags = text + UInt32(name.utf8.count + 1)
        apps[place].tag_count = UInt32(tags.count)
        return true
    }

    /// Removes the app at an index.
    public func remove(_ place: Int) {
        guard isPresent(place) else { return }
        apps[place] = Self.emptyApp
    }

    /// The name of the app at an index; empty if there is none.
    public func name(_ place: Int) -> String {
        guard isPresent(place) else { return "" }
        return String(terminatedWire: strings + Int(apps[place].name))
    }

    /// The tags of the app at an index.
    public func tags(_ place: Int) -> [String] {
        guard isPresent(place) else { return [] }
        var tags: [String] = []
        var text = strings + Int(apps[place].tags)
        for _ in 0..<apps[place].tag_count {
            let tag = String(terminatedWire: text)
            tags.append(tag)
            text += tag.utf8.count + 1
        }
        return tags
    }

    /// The record of an app that never ran.
    public static var emptyApp: torpor_policy_app {
        var app = torpor_policy_app()
        app.size = UInt32(MemoryLayout<torpor_policy_app>.size)
        let never = Int64.min
        app.state_since = (never, never, never, never, never)
        app.last_use = never
        app.launched_at = never
        app.grant_ends = never
        app.next_restart = never
        app.measured_at = never
        app.last_traffic = never
        app.last_heartbeat = never
        app.cpu_permille = UInt32.max
        app.connections = UInt32.max
        return app
    }

    // MARK: Strings

    /// Stores texts one after the other; returns the offset of the first. nil if there is no room even after unused
    /// texts were removed.
    private func store(_ texts: [String]) -> UInt32? {
        let bytes = texts.reduce(0) { $0 + $1.utf8.count + 1 }
        if Int(header.pointee.string_size) + bytes > Self.stringCapacity { tidy() }
        guard Int(header.pointee.string_size) + bytes <= Self.stringCapacity else { return nil }
        let start = Int(header.pointee.string_size)
        var end = start
        for text in texts {
            for byte in text.utf8 {
                // A NUL would end the text, so replace it.
                strings[end] = byte == 0 ? UInt8(ascii: "?") : byte
                end += 1
            }
            strings[end] = 0
            end += 1
        }
        setStringSize(end)
        return UInt32(start)
    }

    /// Moves the texts in use to the front, to make room.
    private func tidy() {
        let texts = (0..<count).map { isPresent($0) ? [name($0)] + tags($0) : [] }
        setStringSize(1)
        for (place, texts) in texts.enumerated() where !texts.isEmpty {
            guard let text = store(texts) else { continue }
            apps[place].name = text
            apps[place].tags = text + UInt32(texts[0].utf8.count + 1)
        }
    }

    private func setStringSize(_ size: Int) {
        header.pointee.string_size = UInt32(size)
        pointers.string_size = UInt32(size)
    }

    private func setCount(_ count: Int) {
        for place in self.count..<count { apps[place] = Self.emptyApp }
        header.pointee.app_count = UInt32(count)
        pointers.app_count = UInt32(count)
    }
}
