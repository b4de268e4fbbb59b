// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Linux
import Varlink

/// Stores whether the machine was in each region of each app, in a file of the runtime directory. So a restarted
/// torpord notices if the machine entered or left a region while no torpord ran. A reboot removes the file.
struct LocationLedger {
    private let path: String
    private var entries: [String: Bool] = [:]

    /// Reads the file that an earlier torpord wrote.
    init(_ directory: String) {
        path = directory + "/regions.json"
        guard let bytes = try? File.read(path), let json = try? JSON.parse(bytes) else { return }
        for member in json.objectValue?.members ?? [] { entries[member.name] = member.value.boolValue }
    }

    /// The key of a region in the file. The key contains the circle, so that a region whose circle has changed counts
    /// as new.
    private static func key(_ app: String, _ region: RegionSpecification) -> String {
        "\(app)/\(region.name)/\(region.latitude),\(region.longitude),\(region.radius)"
    }

    /// Whether the machine was in the region when this was last recorded; nil if it was never recorded.
    func isInside(_ app: String, _ region: RegionSpecification) -> Bool? { entries[Self.key(app, region)] }

    /// Records whether the machine is in the region.
    mutating func note(_ app: String, _ region: RegionSpecification, isInside: Bool?) {
        entries[Self.key(app, region)] = isInside
        let members = entries.sorted { $0.key < $1.key }.map { JSONObject.Member(name: $0.key, value: .bool($0.value)) }
        // The runtime directory is on tmpfs, so this write does not block on a disk.
        try? File.replace(path, JSON.object(JSONObject(members: members)).serialised(), mode: 0o600)
    }
}
