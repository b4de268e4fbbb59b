// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Linux
import Varlink

/// In which regions apps were, in a file of the runtime directory: so a torpord that is started again tells a crossing that
/// fell into the time between. A boot begins anew.
struct LocationLedger {
    private let path: String
    private var entries: [String: Bool] = [:]

    /// Reads what an earlier torpord wrote.
    init(_ directory: String) {
        path = directory + "/regions.json"
        guard let bytes = try? File.read(path), let json = try? JSON.parse(bytes) else { return }
        for member in json.objectValue?.members ?? [] { entries[member.name] = member.value.boolValue }
    }

    /// Another circle of the same name is another region.
    private static func key(_ app: String, _ region: RegionSpecification) -> String {
        "\(app)/\(region.name)/\(region.latitude),\(region.longitude),\(region.radius)"
    }

    /// Whether the machine was there; nil where that is not known.
    func isInside(_ app: String, _ region: RegionSpecification) -> Bool? { entries[Self.key(app, region)] }

    /// Notes that it is there, or not.
    mutating func note(_ app: String, _ region: RegionSpecification, isInside: Bool?) {
        entries[Self.key(app, region)] = isInside
        let members = entries.sorted { $0.key < $1.key }.map { JSONObject.Member(name: $0.key, value: .bool($0.value)) }
        // The runtime directory is in memory: this waits for no disk.
        try? File.replace(path, JSON.object(JSONObject(members: members)).serialised(), mode: 0o600)
    }
}
