// SPDX-License-Identifier: Apache-2.0

import Varlink

/// A report of gpsd (gpsd_json(5)), reduced to what Torpor uses.
public enum GPSReport: Sendable, Hashable {
    /// gpsd's version.
    case version(release: String)
    /// The number of receivers.
    case devices(Int)
    /// A receiver's position.
    case fix(Position)
    /// A receiver has no position.
    case noFix
    /// gpsd rejected a request.
    case error(String)
    /// Any other report.
    case other

    /// Parses a line; nil if it is not a report.
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
        // In mode 2, latitude and longitude are known; in mode 3, the altitude is known too.
        guard let mode = json["mode"]?.intValue, mode >= 2, let latitude = json["lat"]?.doubleValue,
            let longitude = json["lon"]?.doubleValue, (-90...90).contains(latitude), (-180...180).contains(longitude)
        else { return nil }
        // `eph` exists since gpsd 3.20. Earlier versions report the errors as `epx` and `epy`, also with 95 %
        // confidence.
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
