// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Curves over the number of apps. Both axes are logarithmic.
enum Curves {
    private static let height = 190.0

    /// Returns the drawing and its height.
    static func draw(_ results: Results, y: Double, width: Double, columns: Int) -> (String, Double) {
        var names: [String] = []
        for name in results.tables.compactMap(\.curve) where !names.contains(name) { names.append(name) }
        names = names.filter { name in results.tables.filter { $0.curve == name }.count > 1 }
        var body = ""
        for (index, name) in names.enumerated() {
            let tables = results.tables.filter { $0.curve == name }
            let top = y + Double(index / columns) * (height + 50)
            body += one(name, tables, x: 8 + Double(index % columns) * width, y: top, width: width - 20)
        }
        let lines = (names.count + columns - 1) / columns
        return (body, Double(lines) * (height + 50))
    }

    private static func one(_ name: String, _ tables: [Results.Table], x: Double, y: Double, width: Double) -> String {
        let counts = tables.compactMap(\.apps).sorted()
        let all = tables.flatMap(\.rows).map(\.median).filter { $0 > 0 }
        guard let least = all.min(), let most = all.max(), counts.count > 1 else { return "" }
        let low = log10(least).rounded(.down)
        let high = max(low + 1, log10(most).rounded(.up))
        let (left, right, top, bottom) = (x + 38, x + width - 70, y + 46, y + 20 + height)
        // Zero has no logarithm: place it left of the smallest number.
        let fewest = counts.first { $0 > 0 } ?? 1
        func place(_ apps: Int) -> Double { apps > 0 ? log10(Double(apps)) : log10(Double(fewest)) - 0.7 }
        func across(_ apps: Int) -> Double {
            let (first, last) = (place(counts[0]), place(counts[counts.count - 1]))
            return left + (right - left) * (place(apps) - first) / (last - first)
        }
        func up(_ value: Double) -> Double { bottom - (bottom - top) * (log10(value) - low) / (high - low) }
        var body = SVG.label("\(name), by number of apps", x: x, y: y + 18, size: 12, isBold: true)
        body += SVG.label("\(tables[0].unit), log scale", x: x, y: y + 31, size: 10)
        for power in stride(from: low, through: high, by: 1) {
            let value = pow(10, power)
            body += SVG.rule((left, up(value)), (right, up(value)))
            body += SVG.label(Statistics.short(value), x: left - 5, y: up(value) + 3, size: 9, anchor: "end")
        }
        for count in counts {
            body += SVG.label(grouped(count), x: across(count), y: bottom + 14, size: 9, anchor: "middle")
        }
        var ends: [(peer: String, y: Double)] = []
        var peers: [String] = []
        for row in tables.flatMap(\.rows) where !peers.contains(row.peer) { peers.append(row.peer) }
        for peer in peers {
            let points = tables.sorted { ($0.apps ?? 0) < ($1.apps ?? 0) }.compactMap { table in
                table.rows.first { $0.peer == peer && $0.median > 0 }.map {
                    (x: across(table.apps ?? 0), y: up($0.median))
                }
            }
            guard points.count > 1, let last = points.last else { continue }
            body += SVG.curve(points, colour: SVG.colour(peer))
            ends.append((peer, last.y))
        }
        // Labels at the ends of the curves, moved apart where they overlap.
        var free = -Double.infinity
        for end in ends.sorted(by: { $0.y < $1.y }) {
            let place = max(end.y, free)
            free = place + 11
            let isBold = Results.isTorpor(end.peer)
            body += SVG.label(
                end.peer,
                x: right + 7,
                y: place + 3,
                size: 10,
                colour: SVG.colour(end.peer),
                isBold: isBold
            )
        }
        return body
    }
}
