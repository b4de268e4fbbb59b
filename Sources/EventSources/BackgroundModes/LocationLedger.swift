// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Linux
import Varlink

/// Stores which regions apps were in, in a file of the runtime directory: a torpord that is restarted detects a
/// crossing that happened in between. A reboot starts fresh.
struct LocationLedger {
    private let path: String
    private var entries: [String: Bool] = [:]

    /// Reads what an earlier torpord wrote.
    init(_ directory: String) {
        path = directory + "/regions.json"
        guard let bytes = try? File.read(path), let json = try? JSON.parse(bytes) else { return }
        for member in json.objectValue?.members ?? [] { entries[member.name] = member.value.boolValue }
    }

    /// Another circle with the same name is another region.
    private static func key(_ app: String, _ region: RegionSpecification) -> String {
        "\(app)/\(region.name)/\(region.latitude),\(region.longitude),\(region.radius)"
    }

    /// Whether the machine was in the region; nil if unknown.
    func isInside(_ app: String, _ region: RegionSpecification) -> Bool? { entries[Self.key(app, region)] }

    /// Stores whether the machine is in the region.
    mutating func note(_ app: String, _ region: RegionSpecification, isInside: Bool?) {
        entries[Self.key(app, region)] = isInside
        let members = entries.sorted { $0.key < $1.key }.map { JSONObject.Member(name: $0.key, value: .bool($0.value)) }
        // The runtime directory is in memory: this does not block on a disk.
        try? File.replace(path, JSON.object(JSONObject(members: members)).serialised(), mode: 0o600)
    }
}
