// SPDX-License-Identifier: Apache-2.0

import Varlink

/// What gpsd says in a line (gpsd_json(5)), as far as it matters here.
public enum GPSReport: Sendable, Hashable {
    /// Who answers.
    case version(release: String)
    /// How many receivers there are.
    case devices(Int)
    /// A receiver knows where it is.
    case fix(Position)
    /// A receiver does not know where it is.
    case noFix
    /// Something was wrong with what was asked.
    case error(String)
    /// Anything else.
    case other

    /// Nil for what is not a report at all.
    public init?(line: some Sequence<UInt8>) {
        guard let json = try? JSON.parse(Array(line)), let kind = json["class"]?.stringValue else { return nil }
        switch kind {
        case "VERSION": self = .version(release: json["release"]?.stringValue ?? "of an unknown version")
        case "DEVICES": self = .devices(json["devices"]?.arrayValue?.count ?? 0)
        case "ERROR": self = .error(json["message"]?.stringValue ?? "an error")
        case "TPV": self = Self.position(json).map(GPSReport.fix) ?? .noFix
        default: self = .other
        }
    }

    private static func position(_ json: JSON) -> Position? {
        // 2: latitude and longitude are known; 3: altitude too.
        guard let mode = json["mode"]?.intValue, mode >= 2, let latitude = json["lat"]?.doubleValue,
            let longitude = json["lon"]?.doubleValue, (-90...90).contains(latitude), (-180...180).contains(longitude)
        else { return nil }
        // `eph` came with gpsd 3.20; what was before it is of 95 % too.
        let parts = [json["epx"]?.doubleValue, json["epy"]?.doubleValue].compactMap { $0 }
        let error = json["eph"]?.doubleValue ?? (parts.map { $0 * $0 }.reduce(0, +)).squareRoot()
        var position = Position(latitude: latitude, longitude: longitude, accuracy: error.isFinite ? max(0, error) : 0)
        position.altitude = json["altHAE"]?.doubleValue ?? json["altMSL"]?.doubleValue ?? json["alt"]?.doubleValue
        position.speed = json["speed"]?.doubleValue
        position.course = json["track"]?.doubleValue
        position.time = json["time"]?.stringValue
        return position
    }
}
