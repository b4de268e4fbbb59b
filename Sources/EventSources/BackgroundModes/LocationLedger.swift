// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Linux
import Varlink

/// Stores in which regions the machine was, for each app, in a file of the runtime directory. So a restarted torpord
/// detects that the machine crossed a border since then. After a reboot the file is empty.
struct LocationLedger {
    private let path: String
    private var entries: [String: Bool] = [:]

    /// Reads the file that an earlier torpord wrote.
    init(_ directory: String) {
        path = directory + "/regions.json"
        guard let bytes = try? File.read(path), let json = try? JSON.parse(bytes) else { return }
        for member in json.objectValue?.members ?? [] { entries[member.name] = member.value.boolValue }
    }

    /// The key of a region. It contains the circle, so a region with the same name and another circle is a new one.
    private static func key(_ app: String, _ region: RegionSpecification) -> String {
        "\(app)/\(region.name)/\(region.latitude),\(region.longitude),\(region.radius)"
    }

    /// Whether the machine was in the region; nil if unknown.
    func isInside(_ app: String, _ region: RegionSpecification) -> Bool? { entries[Self.key(app, region)] }

    /// Stores whether the machine is in the region.
    mutating func note(_ app: String, _ region: RegionSpecification, isInside: Bool?) {
        entries[Self.key(app, region)] = isInside
        let members = entries.sorted { $0.key < $1.key }.map { JSONObject.Member(name: $0.key, value: .bool($0.value)) }
        // The runtime directory is in memory, so this does not block on a disk.
        try? File.replace(path, JSON.object(JSONObject(members: members)).serialised(), mode: 0o600)
    }
}
