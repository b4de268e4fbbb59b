// SPDX-License-Identifier: Apache-2.0

/// Stores a time as nanoseconds, within ±292 years, in 8 bytes instead of the 16 of a `Duration`, because each app
/// stores many times.
@propertyWrapper
struct Packed: Sendable, Hashable {
    private var nanoseconds: Int64

    init(wrappedValue: Duration) { nanoseconds = wrappedValue.nanoseconds }

    var wrappedValue: Duration {
        get { .nanoseconds(nanoseconds) }
        set { nanoseconds = newValue.nanoseconds }
    }
}

/// A ``Packed`` time that may be nil.
@propertyWrapper
struct OptionallyPacked: Sendable, Hashable {
    private static let none = Int64.min
    private var nanoseconds: Int64

    init(wrappedValue: Duration?) { nanoseconds = wrappedValue?.nanoseconds ?? Self.none }

    var wrappedValue: Duration? {
        get { nanoseconds == Self.none ? nil : .nanoseconds(nanoseconds) }
        set { nanoseconds = newValue?.nanoseconds ?? Self.none }
    }
}
