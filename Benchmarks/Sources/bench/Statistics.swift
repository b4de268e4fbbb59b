// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Statistics of the values of one figure.
struct Statistics {
    let count: Int
    let median: Double
    let minimum: Double
    let maximum: Double
    let percentile99: Double

    /// Nil if there are no values.
    init?(_ values: [Double]) {
        guard !values.isEmpty else { return nil }
        let sorted = values.sorted()
        count = sorted.count
        minimum = sorted[0]
        maximum = sorted[count - 1]
        median = count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2
        // The nearest rank: the 99th of a hundred values.
        percentile99 = sorted[max(0, Int((Double(count) * 0.99).rounded(.up)) - 1)]
    }

    /// A power of ten without trailing zeros.
    static func short(_ value: Double) -> String { value >= 1 ? grouped(Int(value)) : String(format: "%g", value) }

    /// Three significant digits, never an exponent.
    static func text(_ value: Double) -> String {
        let magnitude = abs(value)
        if magnitude == 0 { return "0" }
        if magnitude >= 1_000 { return grouped(Int(value.rounded())) }
        if magnitude >= 100 { return String(format: "%.0f", value) }
        if magnitude >= 10 { return String(format: "%.1f", value) }
        if magnitude >= 1 { return String(format: "%.2f", value) }
        return String(format: "%.3f", value)
    }
}
