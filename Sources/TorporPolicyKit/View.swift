// SPDX-License-Identifier: Apache-2.0

/// All apps and the machine as they are now: a view into the supervisor's own memory, without a copy, valid until the
/// policy has answered the question.
public struct View {
    @usableFromInline
    let raw: UnsafePointer<torpor_policy_view>
    /// When the event happened that the policy is asked about. One question can contain many events, and the view shows
    /// the apps as they are after all of them, so this can be earlier than ``now``. To put events of apps in order,
    /// compare this time.
    public let eventTime: Time

    /// Wraps the C struct; nil if the struct is too short. `eventTime`: nil for the view's own time.
    @usableFromInline
    init?(_ raw: UnsafePointer<torpor_policy_view>, eventTime: Time? = nil) {
        guard raw.pointee.size >= MemoryLayout<torpor_policy_view>.size else { return nil }
        self.raw = raw
        self.eventTime = eventTime ?? Machine(raw: raw.pointee.system).now
    }

    /// The apps, sorted by place.
    @inlinable
    public var apps: Apps { Apps(view: self) }

    /// The app with this index (``App/place``); nil if no app has the index now.
    @inlinable
    public subscript(place: UInt32) -> App? {
        let view = raw.pointee
        guard place < view.app_count, let apps = view.apps else { return nil }
        let app = (apps + Int(place) &* Int(view.app_size)).assumingMemoryBound(to: torpor_policy_app.self)
        // The record must be long enough for `size` and `flags`, which are read here. The properties of App check
        // whether the record has the other fields.
        guard app.pointee.size >= 8, app.pointee.flags & 1 != 0 else { return nil }
        return App(raw: app, view: raw, place: place)
    }

    /// How many indices of apps are in use or were used (``App/place``); some may have no app now.
    @inlinable
    public var placeCount: Int { Int(raw.pointee.app_count) }

    /// The app with that name; nil if there is none. Searches linearly.
    public func app(named name: String) -> App? {
        for app in apps where app.isNamed(name) { return app }
        return nil
    }

    /// The machine.
    @inlinable
    public var machine: Machine { Machine(raw: raw.pointee.system) }

    /// The current time (CLOCK_MONOTONIC), as in ``Machine/now``.
    @inlinable
    public var now: Time { machine.now }

    /// Iterates over the apps.
    public struct Apps: Sequence, IteratorProtocol {
        @usableFromInline
        let view: View
        @usableFromInline
        var place: UInt32 = 0

        @usableFromInline
        init(view: View) { self.view = view }

        /// The next app; nil after the last one.
        @inlinable
        public mutating func next() -> App? {
            let count = view.raw.pointee.app_count
            while place < count {
                let app = view[place]
                place &+= 1
                if let app { return app }
            }
            return nil
        }
    }
}

/// The machine.
public struct Machine {
    @usableFromInline
    let raw: UnsafePointer<torpor_policy_system>?

    @inlinable
    init(raw: UnsafePointer<torpor_policy_system>?) { self.raw = raw }

    /// A field, or the fallback if the supervisor's version does not have the field.
    @inlinable
    @inline(__always)
    func field<Value>(_ path: KeyPath<torpor_policy_system, Value>, else fallback: Value) -> Value {
        guard let raw, let offset = MemoryLayout<torpor_policy_system>.offset(of: path),
            Int(raw.pointee.size) >= offset + MemoryLayout<Value>.size
        else { return fallback }
        return raw.pointee[keyPath: path]
    }

    /// The current time, on the clock of all times in the view.
    @inlinable
    public var now: Time { Time(microseconds: field(\.now, else: 0)) }
    /// The current time in microseconds since 1970.
    @inlinable
    public var microsecondsSince1970: Int64 { field(\.realtime, else: 0) }
    /// When the supervisor started.
    @inlinable
    public var started: Time { Time(microseconds: field(\.started, else: 0)) }
    /// The number of processors.
    @inlinable
    public var processors: Int { Int(field(\.processors, else: 1)) }
    /// When the properties below were measured; nil before the first measurement.
    @inlinable
    public var measuredAt: Time? { Time(known: field(\.measured_at, else: .min)) }

    /// The machine's memory in bytes; nil if unknown.
    @inlinable
    public var memoryTotal: UInt64? { known(field(\.memory_total, else: 0)) }
    /// The available memory in bytes; nil if unknown.
    @inlinable
    public var memoryAvailable: UInt64? { known(field(\.memory_available, else: 0)) }
    /// The size of swap in bytes; nil if unknown or without swap.
    @inlinable
    public var swapTotal: UInt64? { known(field(\.swap_total, else: 0)) }
    /// The free swap in bytes; nil if unknown or without swap.
    @inlinable
    public var swapFree: UInt64? { swapTotal == nil ? nil : field(\.swap_free, else: 0) }

    /// Percent of the last 10 s in which some task waited for memory.
    @inlinable
    public var memorySome: Double? { hundredths(field(\.memory_some, else: .max)) }
    /// Percent of the last 10 s in which all tasks waited for memory.
    @inlinable
    public var memoryFull: Double? { hundredths(field(\.memory_full, else: .max)) }
    /// Percent of the last 10 s in which some task waited for a processor.
    @inlinable
    public var processorSome: Double? { hundredths(field(\.cpu_some, else: .max)) }
    /// Percent of the last 10 s in which some task waited for I/O.
    @inlinable
    public var ioSome: Double? { hundredths(field(\.io_some, else: .max)) }
    /// Percent of the last 10 s in which all tasks waited for I/O.
    @inlinable
    public var ioFull: Double? { hundredths(field(\.io_full, else: .max)) }

    /// The load average over 1 minute.
    @inlinable
    public var load1: Double { Double(field(\.load_1, else: 0)) / 100 }
    /// The load average over 5 minutes.
    @inlinable
    public var load5: Double { Double(field(\.load_5, else: 0)) / 100 }
    /// The load average over 15 minutes.
    @inlinable
    public var load15: Double { Double(field(\.load_15, else: 0)) / 100 }

    /// Where the machine's power comes from.
    @inlinable
    public var power: Power { Power(rawValue: field(\.power, else: 0)) ?? .unknown }
    /// The battery's charge in percent; nil without a battery.
    @inlinable
    public var battery: Int? {
        let charge = field(\.battery, else: .max)
        return charge == .max ? nil : Int(charge)
    }
    /// How short memory is.
    @inlinable
    public var pressure: Pressure { Pressure(rawValue: field(\.pressure, else: 0)) ?? .none }

    @inlinable
    func known(_ bytes: UInt64) -> UInt64? { bytes == 0 ? nil : bytes }

    @inlinable
    func hundredths(_ value: UInt32) -> Double? { value == .max ? nil : Double(value) / 100 }
}
