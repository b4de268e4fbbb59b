// SPDX-License-Identifier: Apache-2.0

import CPolicyWire
public import Linux
public import TorporPolicyABI
import WireText

/// What policies see: one record per app and one for the machine, in memory that hosts map read-only.
///
/// It is updated in place and must not change while a question is under way: the caller holds changes back until the
/// answer. Pages that are not in use take no memory.
public final class PolicyView {
    /// The most apps; the keeper launches no more than this either.
    public static let capacity = 16384
    private static let stringCapacity = 8 << 20
    private static let appSize = MemoryLayout<torpor_policy_app>.stride

    /// A memfd for hosts, which they cannot write to.
    public let descriptor: Descriptor
    /// The size of the mapping, in bytes.
    public let size: Int
    /// The view for policies in this process.
    public private(set) var pointers: torpor_policy_view

    private let mapping: Mapping
    private let header: UnsafeMutablePointer<torpor_policy_wire_view>
    private let machine: UnsafeMutablePointer<torpor_policy_system>
    private let apps: UnsafeMutablePointer<torpor_policy_app>
    private let strings: UnsafeMutablePointer<UInt8>

    /// An empty view.
    ///
    /// - Throws: `Errno` without memory or descriptors.
    public init() throws(Errno) {
        let appsOffset = 4096
        let stringsOffset = (appsOffset + Self.capacity * Self.appSize + 4095) / 4096 * 4096
        size = stringsOffset + Self.stringCapacity
        descriptor = try Memory.file(named: "torpor-policy-view", size: UInt64(size))
        mapping = try Mapping(descriptor: descriptor.raw, size: size, writable: true)
        try Memory.seal(descriptor.raw)
        // The mapping begins at a page, and each part is aligned within it.
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
            // The empty text, for places without a name.
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

    /// The number of places; some may be empty.
    public var count: Int { Int(header.pointee.app_count) }

    /// The machine's record.
    public var system: torpor_policy_system {
        get { machine.pointee }
        set {
            machine.pointee = newValue
            machine.pointee.size = UInt32(MemoryLayout<torpor_policy_system>.size)
        }
    }

    /// The app's record in a place below ``count``; all zeros if it was never used.
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

    /// Whether there is an app in the place.
    public func isPresent(_ place: Int) -> Bool {
        place >= 0 && place < count && apps[place].flags & Self.present != 0
    }

    private static let present: UInt32 = 1

    /// Puts an app into a place, as one that never ran. Returns false if there is no room.
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

    /// Empties a place.
    public func remove(_ place: Int) {
        guard isPresent(place) else { return }
        apps[place] = Self.emptyApp
    }

    /// The name of the app in a place; empty if there is none.
    public func name(_ place: Int) -> String {
        guard isPresent(place) else { return "" }
        return String(terminatedWire: strings + Int(apps[place].name))
    }

    /// Its tags.
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

    /// Stores texts in sequence; returns the offset of the first, or nil if there is no room even after compacting.
    private func store(_ texts: [String]) -> UInt32? {
        let bytes = texts.reduce(0) { $0 + $1.utf8.count + 1 }
        if Int(header.pointee.string_size) + bytes > Self.stringCapacity { tidy() }
        guard Int(header.pointee.string_size) + bytes <= Self.stringCapacity else { return nil }
        let start = Int(header.pointee.string_size)
        var end = start
        for text in texts {
            for byte in text.utf8 {
                // A NUL would end the text.
                strings[end] = byte == 0 ? UInt8(ascii: "?") : byte
                end += 1
            }
            strings[end] = 0
            end += 1
        }
        setStringSize(end)
        return UInt32(start)
    }

    /// Compacts: moves the texts in use to the front.
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
