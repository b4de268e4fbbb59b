// SPDX-License-Identifier: Apache-2.0

/// Stores a time as nanoseconds, within ±292 years, in 8 bytes instead of the 16 of a `Duration`, because each app
/// stores many times.
@propertyWrapper
package struct Packed: Sendable, Hashable {
    private var nanoseconds: Int64

    package init(wrappedValue: Duration) { nanoseconds = wrappedValue.nanoseconds }

    package var wrappedValue: Duration {
        get { .nanoseconds(nanoseconds) }
        set { nanoseconds = newValue.nanoseconds }
    }
}

/// A ``Packed`` time that may be nil.
@propertyWrapper
package struct OptionallyPacked: Sendable, Hashable {
    private static let none = Int64.min
    private var nanoseconds: Int64

    package init(wrappedValue: Duration?) { nanoseconds = wrappedValue?.nanoseconds ?? Self.none }

    package var wrappedValue: Duration? {
        get { nanoseconds == Self.none ? nil : .nanoseconds(nanoseconds) }
        set { nanoseconds = newValue?.nanoseconds ?? Self.none }
    }
}
