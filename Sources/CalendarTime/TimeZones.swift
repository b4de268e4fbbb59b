// SPDX-License-Identifier: Apache-2.0

import Glibc
import WireText

/// A source of time zones.
public protocol TimeZones {
    /// The machine's zone, or a substitute: it applies if an expression names no zone.
    var local: TimeZone { get }
    /// The zone with that name, such as `Europe/Berlin`; nil if there is none.
    func zone(named name: String) -> TimeZone?
}

extension TimeZones {
    /// The same zones with a different local zone.
    public func with(local: TimeZone) -> some TimeZones { Relocated(local: local, others: self) }
}

private struct Relocated<Others: TimeZones>: TimeZones {
    var local: TimeZone
    var others: Others

    func zone(named name: String) -> TimeZone? { others.zone(named: name) }
}

/// The zones of the system's time zone database.
///
/// A zone is read whole and holds no file open: it stays as it was when it was read.
public struct SystemTimeZones: TimeZones {
    /// The machine's zone: the variable TZ as in tzset(3), otherwise `/etc/localtime`, otherwise UTC.
    public var local: TimeZone {
        guard let variable = getenv("TZ") else { return Self.read("/etc/localtime") ?? .utc }
        var name = String(terminatedWire: variable)
        if name.first == ":" { name.removeFirst() }
        if name.isEmpty { return .utc }
        let zone = name.first == "/" ? Self.read(name) : zone(named: name)
        return zone ?? TimeZone(rule: name) ?? .utc
    }

    private let directory: String

    /// - Parameter directory: the directory of the database.
    public init(directory: String = "/usr/share/zoneinfo") {
        self.directory = directory
    }

    /// The zone with that name, read again at each call; nil if there is none or its file is invalid.
    public func zone(named name: String) -> TimeZone? {
        // As in systemd, accept only names that cannot lead out of the directory.
        let isSound = name.utf8.allSatisfy {
            isLetter($0) || isDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
                || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "/")
        }
        guard isSound, !name.split(separator: "/", omittingEmptySubsequences: false).contains("") else { return nil }
        // UTC is known even if the machine has no time zone database.
        if name == "UTC" { return .utc }
        return Self.read(directory + "/" + name)
    }

    /// The largest file to read, in bytes; files of the database have a few KiB.
    private static let limit = 1 << 20

    private static func read(_ path: String) -> TimeZone? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size <= limit else {
            return nil
        }
        var bytes: [UInt8] = []
        while bytes.count <= limit {
            let part = [UInt8](unsafeUninitializedCapacity: 16_384) { buffer, count in
                count = max(0, Glibc.read(descriptor, buffer.baseAddress, buffer.count))
            }
            if part.isEmpty { break }
            bytes += part
        }
        return ZoneFile.zone(bytes)
    }
}
