// SPDX-License-Identifier: Apache-2.0

/// A time or a span that takes eight bytes: a thousand machines have some of each. In nanoseconds, within ±292 years.
@propertyWrapper
struct Packed: Sendable, Hashable {
    private var nanoseconds: Int64

    init(wrappedValue: Duration) { nanoseconds = wrappedValue.nanoseconds }

    var wrappedValue: Duration {
        get { .nanoseconds(nanoseconds) }
        set { nanoseconds = newValue.nanoseconds }
    }
}

/// As ``Packed``, or none.
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
