// SPDX-License-Identifier: Apache-2.0

/// The average number of tasks that ran or waited for a processor or disk, in hundredths.
public struct LoadAverage: Hashable, Sendable {
    /// The average over 1 minute.
    public var minute: UInt32
    /// The average over 5 minutes.
    public var fiveMinutes: UInt32
    /// The average over 15 minutes.
    public var quarterHour: UInt32

    /// The current averages; nil if they cannot be read.
    ///
    /// - Parameter root: a prefix for paths below `/proc`; empty except in tests.
    public init?(root: String = "") {
        // The file's content looks like this: 5.62 5.05 3.35 3/205 18721
        guard let text = try? File.readString(root + "/proc/loadavg") else { return nil }
        let averages = text.split(separator: " ").prefix(3).compactMap(hundredths)
        guard averages.count == 3 else { return nil }
        minute = averages[0]
        fiveMinutes = averages[1]
        quarterHour = averages[2]
    }
}
