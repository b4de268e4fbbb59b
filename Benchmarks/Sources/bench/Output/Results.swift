// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The results of a run for output: medians, ratios and everything that was left out.
struct Results: Encodable {
    struct Line: Encodable {
        let peer: String
        let way: String
        let median: Double
        let minimum: Double
        let maximum: Double
        let percentile99: Double
        let count: Int
        /// The median divided by floor's in the same run.
        let toFloor: Double?
        /// The median divided by that of the best peer except floor and Torpor.
        let toBestPeer: Double?

        var label: String { way.isEmpty ? peer : "\(peer) (\(way))" }
    }
    struct Table: Encodable {
        let measurement: String
        let figure: String
        let title: String
        let unit: String
        let better: String
        let curve: String?
        let apps: Int?
        let rows: [Line]
    }
    struct Remark: Encodable {
        let measurement: String
        let peer: String
        let text: String
    }
    struct PeerTitle: Encodable {
        let name: String
        let title: String
        let conditions: String
        let missing: String?
    }
    struct Conditions: Encodable {
        let measurement: String
        let text: String
    }

    let machine: [String: String]
    let quick: Bool
    let seconds: Double
    let peers: [PeerTitle]
    let conditions: [Conditions]
    let tables: [Table]
    let notes: [Remark]

    init(_ run: Run, _ measurements: [any Measurement], seconds: Double) {
        machine = Self.machine()
        quick = run.bench.quick
        self.seconds = seconds
        peers = run.peers.map {
            PeerTitle(name: $0.name, title: $0.title, conditions: $0.conditions, missing: $0.missing)
        }
        conditions = measurements.map { Conditions(measurement: $0.name, text: $0.conditions(run.bench)) }
        tables = measurements.flatMap { measurement in
            measurement.figures(run.bench).compactMap { Self.table(measurement, $0, run.rows[$0.name] ?? []) }
        }
        notes = run.notes.map { Remark(measurement: $0.measurement, peer: $0.peer, text: $0.text) }
    }

    /// Whether it is Torpor in any form.
    static func isTorpor(_ peer: String) -> Bool { peer.hasPrefix("torpor") }

    /// Whether a way is a whole process: floor's are hello programs.
    static func isCommand(_ way: String) -> Bool { way == "command" || way.hasPrefix("hello") }

    private static func table(_ measurement: any Measurement, _ figure: Figure, _ rows: [Row]) -> Table? {
        let known = rows.compactMap { row in Statistics(row.values).map { (row, $0) } }
        guard !known.isEmpty else { return nil }
        /// Compares commands with commands and open connections with open connections; floor without a way is
        /// compared with both.
        func peers(_ row: Row, isFloor: Bool) -> [Double] {
            known.filter { other, _ in
                (other.peer == "floor") == isFloor && !isTorpor(other.peer)
                    && (isCommand(other.way) == isCommand(row.way) || (isFloor && other.way.isEmpty))
            }
            .map(\.1.median)
        }
        func best(_ values: [Double]) -> Double? { figure.better == .lower ? values.min() : values.max() }
        func ratio(_ value: Double, _ to: Double?) -> Double? { to.flatMap { $0 > 0 ? value / $0 : nil } }
        return Table(
            measurement: measurement.name,
            figure: figure.name,
            title: figure.title,
            unit: figure.unit,
            better: figure.better.rawValue,
            curve: figure.curve?.name,
            apps: figure.curve?.apps,
            rows: known.map { row, statistics in
                Line(
                    peer: row.peer,
                    way: row.way,
                    median: statistics.median,
                    minimum: statistics.minimum,
                    maximum: statistics.maximum,
                    percentile99: statistics.percentile99,
                    count: statistics.count,
                    toFloor: ratio(statistics.median, peers(row, isFloor: true).first),
                    toBestPeer: ratio(statistics.median, best(peers(row, isFloor: false)))
                )
            }
        )
    }

    func json() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self)
    }

    private static func machine() -> [String: String] {
        var name = utsname()
        uname(&name)
        let kernel = withUnsafeBytes(of: name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        let lines = (Processes.read("/proc/cpuinfo") ?? "").split(separator: "\n")
        let model = lines.first { $0.hasPrefix("model name") }?.split(separator: ":").last ?? ""
        let kibibytes =
            (Processes.read("/proc/meminfo") ?? "").split(separator: "\n").first?
            .split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return [
            "kernel": "Linux \(kernel)",
            "processors": "\(sysconf(Int32(_SC_NPROCESSORS_ONLN))) × \(model.trimmingCharacters(in: .whitespaces))",
            "memory": "\(kibibytes >> 20) GiB",
            "date": ISO8601DateFormatter().string(from: Date()),
        ]
    }
}
