// SPDX-License-Identifier: Apache-2.0

internal import TorporPolicyABI

/// A field of a record in a view, by its name in `torpor_policy.h`. Recordings of policies consist of such fields.
public struct PolicyField: Sendable {
    /// The field's name.
    public let name: String
    /// The number of values; more than one for an array.
    public let count: Int

    private let offset: Int
    private let kind: Kind

    private enum Kind {
        case natural32, integer32, integer64, natural64
        /// `known32` is a natural32 that may be `TORPOR_UNKNOWN`; `time` is an integer64 that may be `TORPOR_NEVER`.
        case known32, time

        var size: Int {
            switch self {
            case .natural32, .integer32, .known32: 4
            case .integer64, .natural64, .time: 8
            }
        }
    }

    private init<Record>(_ name: String, _ path: PartialKeyPath<Record>, _ kind: Kind, count: Int = 1) {
        self.name = name
        self.kind = kind
        self.count = count
        // Fields of C structs are stored properties, so they always have an offset.
        offset = MemoryLayout<Record>.offset(of: path)!
    }

    /// The fields of an app's record, except those that point to strings.
    public static let ofApps: [PolicyField] = [
        PolicyField("flags", \torpor_policy_app.flags, .natural32),
        PolicyField("state", \torpor_policy_app.state, .natural32),
        PolicyField("edge", \torpor_policy_app.edge, .natural32),
        PolicyField("goal", \torpor_policy_app.goal, .natural32),
        PolicyField("incarnation", \torpor_policy_app.incarnation, .natural32),
        PolicyField("priority", \torpor_policy_app.priority, .integer32),
        PolicyField("last_reason", \torpor_policy_app.last_reason, .natural32),
        PolicyField("processes", \torpor_policy_app.processes, .natural32),
        PolicyField("state_since", \torpor_policy_app.state_since, .time, count: Int(TORPOR_STATE_COUNT)),
        PolicyField("last_use", \torpor_policy_app.last_use, .time),
        PolicyField("launched_at", \torpor_policy_app.launched_at, .time),
        PolicyField("grant_ends", \torpor_policy_app.grant_ends, .time),
        PolicyField("next_restart", \torpor_policy_app.next_restart, .time),
        PolicyField("restarts_in_window", \torpor_policy_app.restarts_in_window, .natural32),
        PolicyField("restart_limit", \torpor_policy_app.restart_limit, .natural32),
        PolicyField("tasks", \torpor_policy_app.tasks, .natural32),
        PolicyField("holds", \torpor_policy_app.holds, .natural32),
        PolicyField("measured_at", \torpor_policy_app.measured_at, .time),
        PolicyField("memory", \torpor_policy_app.memory, .natural64),
        PolicyField("cpu_time", \torpor_policy_app.cpu_time, .natural64),
        PolicyField("cpu_permille", \torpor_policy_app.cpu_permille, .known32),
        PolicyField("connections", \torpor_policy_app.connections, .known32),
        PolicyField("last_traffic", \torpor_policy_app.last_traffic, .time),
        PolicyField("last_heartbeat", \torpor_policy_app.last_heartbeat, .time),
        PolicyField("mail", \torpor_policy_app.mail, .natural32),
        PolicyField("unhandled", \torpor_policy_app.unhandled, .natural32),
    ]

    /// The fields of the machine's record, except the current time.
    public static let ofSystem: [PolicyField] = [
        PolicyField("processors", \torpor_policy_system.processors, .natural32),
        PolicyField("started", \torpor_policy_system.started, .integer64),
        PolicyField("measured_at", \torpor_policy_system.measured_at, .time),
        PolicyField("memory_total", \torpor_policy_system.memory_total, .natural64),
        PolicyField("memory_available", \torpor_policy_system.memory_available, .natural64),
        PolicyField("swap_total", \torpor_policy_system.swap_total, .natural64),
        PolicyField("swap_free", \torpor_policy_system.swap_free, .natural64),
        PolicyField("memory_some", \torpor_policy_system.memory_some, .known32),
        PolicyField("memory_full", \torpor_policy_system.memory_full, .known32),
        PolicyField("cpu_some", \torpor_policy_system.cpu_some, .known32),
        PolicyField("io_some", \torpor_policy_system.io_some, .known32),
        PolicyField("io_full", \torpor_policy_system.io_full, .known32),
        PolicyField("load_1", \torpor_policy_system.load_1, .natural32),
        PolicyField("load_5", \torpor_policy_system.load_5, .natural32),
        PolicyField("load_15", \torpor_policy_system.load_15, .natural32),
        PolicyField("power", \torpor_policy_system.power, .natural32),
        PolicyField("battery", \torpor_policy_system.battery, .known32),
        PolicyField("pressure", \torpor_policy_system.pressure, .natural32),
    ]

    /// The fields in ``ofApps`` by name.
    public static let byNameOfApps = byName(ofApps)
    /// The fields in ``ofSystem`` by name.
    public static let byNameOfSystem = byName(ofSystem)

    private static func byName(_ fields: [PolicyField]) -> [String: PolicyField] {
        Dictionary(uniqueKeysWithValues: fields.map { ($0.name, $0) })
    }

    // MARK: Values

    /// A value of the field in a record; nil for `TORPOR_NEVER` and `TORPOR_UNKNOWN`. Values above Int64.max are
    /// returned as Int64.max.
    public func value(in record: UnsafeRawBufferPointer, _ index: Int = 0) -> Int64? {
        let place = offset + index * kind.size
        switch kind {
        case .natural32: return Int64(record.loadUnaligned(fromByteOffset: place, as: UInt32.self))
        case .integer32: return Int64(record.loadUnaligned(fromByteOffset: place, as: Int32.self))
        case .integer64: return record.loadUnaligned(fromByteOffset: place, as: Int64.self)
        case .natural64: return Int64(clamping: record.loadUnaligned(fromByteOffset: place, as: UInt64.self))
        case .known32:
            let value = record.loadUnaligned(fromByteOffset: place, as: UInt32.self)
            return value == UInt32.max ? nil : Int64(value)
        case .time:
            let value = record.loadUnaligned(fromByteOffset: place, as: Int64.self)
            return value == Int64.min ? nil : value
        }
    }

    /// Stores a value of the field in a record. Returns false, and changes nothing, if the field cannot have this
    /// value.
    public func put(_ value: Int64?, into record: UnsafeMutableRawBufferPointer, _ index: Int = 0) -> Bool {
        let place = offset + index * kind.size
        switch kind {
        case .natural32, .known32:
            guard value != nil || kind == .known32, let number = value.map(UInt32.init(exactly:)) ?? UInt32.max else {
                return false
            }
            record.storeBytes(of: number, toByteOffset: place, as: UInt32.self)
        case .integer32:
            guard let value, let number = Int32(exactly: value) else { return false }
            record.storeBytes(of: number, toByteOffset: place, as: Int32.self)
        case .natural64:
            guard let value, let number = UInt64(exactly: value) else { return false }
            record.storeBytes(of: number, toByteOffset: place, as: UInt64.self)
        case .integer64:
            guard let value else { return false }
            record.storeBytes(of: value, toByteOffset: place, as: Int64.self)
        case .time:
            record.storeBytes(of: value ?? Int64.min, toByteOffset: place, as: Int64.self)
        }
        return true
    }

    /// Stores a number in a record, converted to the field's type: Int64.min and Int64.max become the smallest and
    /// largest values of the type, which may mean never or unknown.
    public func force(_ value: Int64, into record: UnsafeMutableRawBufferPointer, _ index: Int = 0) {
        let place = offset + index * kind.size
        switch kind {
        case .natural32, .known32:
            record.storeBytes(of: UInt32(truncatingIfNeeded: value), toByteOffset: place, as: UInt32.self)
        case .integer32: record.storeBytes(of: Int32(clamping: value), toByteOffset: place, as: Int32.self)
        case .integer64, .time: record.storeBytes(of: value, toByteOffset: place, as: Int64.self)
        case .natural64:
            let number = value == Int64.min ? 0 : value == Int64.max ? UInt64.max : UInt64(bitPattern: value)
            record.storeBytes(of: number, toByteOffset: place, as: UInt64.self)
        }
    }

    /// Whether both records have the same values in the field.
    public func isSame(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
        for index in 0..<count where value(in: one, index) != value(in: other, index) { return false }
        return true
    }
}
