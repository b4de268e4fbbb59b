// SPDX-License-Identifier: Apache-2.0

import WireText

/// Reads `[supervisor.alerts]`.
enum AlertReader {
    static let keys: [Key<AlertSpecification>] = [
        .value("commands", \.commands, commands),
        .value("desktop", \.desktop) { Read.choice($0, $1) },
        .value("missed_after", \.missedAfter, Read.deadline),
        .value("quiet", \.quiet, windows),
    ]

    /// The maximum number of entries in each list.
    private static let most = 16

    @Sendable private static func commands(_ context: Context, _ node: Node) -> [[String]]? {
        let commands: [[String]]? = Read.elements(context, node, of: "commands") { context, node in
            guard let words = Read.command(context, node) else { return nil }
            if words.isEmpty { context.error("must name a program", at: node.position) }
            return words
        }
        return bounded(commands, context, node)
    }

    @Sendable private static func windows(_ context: Context, _ node: Node) -> [DailyWindow]? {
        let windows: [DailyWindow]? = Read.elements(context, node, of: "strings") { context, node in
            guard let text = Read.text(context, node) else { return nil }
            if let window = DailyWindow(text) { return window }
            context.error(
                "\(quoted(text)) is not a time window: write one like \"22:00-07:00\", whose end differs from its begin",
                at: node.position
            )
            return nil
        }
        return bounded(windows, context, node)
    }

    private static func bounded<T>(_ list: [T]?, _ context: Context, _ node: Node) -> [T]? {
        guard let list, list.count > most else { return list }
        context.error("has \(list.count) entries: at most \(most) are allowed", at: node.position)
        return nil
    }

    @Sendable static func members(of alerts: AlertSpecification) -> [String: String] {
        [
            "commands": Write.value(.array(alerts.commands.map { .array($0.map { .string($0) }) })),
            "desktop": alerts.desktop.rawValue,
            "missed_after": alerts.missedAfter.map(Quantity.text) ?? "none",
            "quiet": Write.value(.array(alerts.quiet.map { .string($0.text) })),
        ]
    }
}
