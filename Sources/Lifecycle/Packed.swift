// SPDX-License-Identifier: Apache-2.0

/// A time in nanoseconds, within ±292 years. It takes 8 bytes, a `Duration` 16, and each app stores several times.
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
