// SPDX-License-Identifier: Apache-2.0

import Varlink

/// An app's memory as it counts for its memory limit.
public struct CountedMemory: Hashable, Sendable {
    /// How memory is counted.
    public enum Measure: String, Hashable, Sendable {
        /// The kernel counts it for the app's cgroup.
        case cgroup
        /// The resident memory of the processes, where a page that several share counts once (PSS).
        case proportional
        /// The resident memory of the processes, where a page that several share counts for each.
        case resident
    }

    /// The memory in bytes.
    public var bytes: Int64
    /// How it was counted.
    public var measure: Measure

    /// Memberwise initializer.
    public init(bytes: Int64, _ measure: Measure) { (self.bytes, self.measure) = (bytes, measure) }

    init?(fields: Fields) throws(FieldError) {
        guard let bytes = try fields.optionalInt("memory_counted"),
            let measure = try fields.optionalString("memory_counted_by").flatMap(Measure.init(rawValue:))
        else { return nil }
        (self.bytes, self.measure) = (bytes, measure)
    }
}

/// The fields of ``AppStatus`` about an app's memory limit.
struct LimitedMemory: Hashable, Sendable {
    var limit: Int64?
    var counted: CountedMemory?
}
