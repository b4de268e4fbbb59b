// SPDX-License-Identifier: Apache-2.0

import Location

/// A line of gpsd.
enum GPSReports: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            guard case .fix(let position) = GPSReport(line: line) else { continue }
            try expect((-90...90).contains(position.latitude), "latitude \(position.latitude)")
            try expect((-180...180).contains(position.longitude), "longitude \(position.longitude)")
            try expect(position.accuracy.isFinite && position.accuracy >= 0, "accuracy \(position.accuracy)")
            let distance = position.distance(to: Position(latitude: 52.5, longitude: 13.4))
            try expect(distance.isFinite && distance >= 0 && distance < 20_100_000, "\(distance) m away")
        }
    }
}
