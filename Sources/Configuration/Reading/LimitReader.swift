// SPDX-License-Identifier: Apache-2.0

import WireText

extension TableReader {
    /// The unit of a limit's value.
    enum LimitUnit {
        case bytes
        case number
        case seconds
        case microseconds
        /// The number of processes and threads of the whole app.
        case tasks
    }

    /// The limits of setrlimit(2) with their names in limits.conf(5), and `tasks`, the limit on the number of processes
    /// and threads of an app. The numbers are the same on all architectures that Torpor supports.
    static let limitNames: [(name: String, resource: Int32, unit: LimitUnit)] = [
        ("as", 9, .bytes), ("core", 4, .bytes), ("cpu", 0, .seconds), ("data", 2, .bytes), ("fsize", 1, .bytes),
        ("locks", 10, .number), ("memlock", 8, .bytes), ("msgqueue", 12, .bytes), ("nice", 13, .number),
        ("nofile", 7, .number), ("nproc", 6, .number), ("rss", 5, .bytes), ("rtprio", 14, .number),
        ("rttime", 15, .microseconds), ("sigpending", 11, .number), ("stack", 3, .bytes),
        ("tasks", ResourceLimit.tasks, .tasks),
    ]

    static func limits(_ context: Context, _ node: Node) -> [ResourceLimit] {
        var limits: [ResourceLimit] = []
        for member in Read.members(context, node) ?? [] {
            let inner = context.at(member.key)
            guard let known = limitNames.first(where: { $0.name == member.key }) else {
                Read.unknown(inner, member, among: limitNames.map(\.name))
                continue
            }
            guard let (soft, hard) = bounds(inner, member.node, known.unit) else { continue }
            if known.unit == .tasks, soft != hard || soft == 0 {
                inner.error("must be a single number of 1 or more, or \"unlimited\"", at: member.node.position)
                continue
            }
            limits.append(ResourceLimit(name: known.name, resource: known.resource, soft: soft, hard: hard))
        }
        return limits
    }

    /// Reads the soft and the hard value of a limit. Both are the same for `4096`, `"64MiB"` or `"unlimited"`;
    /// `"SOFT:HARD"` contains two values.
    private static func bounds(_ context: Context, _ node: Node, _ unit: LimitUnit) -> (UInt64, UInt64)? {
        switch node.value {
        case .integer(let number):
            guard let value = UInt64(exactly: number) else {
                context.error("\(number) is negative: write 0 or more, or \"unlimited\"", at: node.position)
                return nil
            }
            return (value, value)
        case .string(let text):
            let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
            let values = parts.compactMap { amount($0, unit) }
            guard values.count == parts.count, let soft = values.first, let hard = values.last, parts.count <= 2 else {
                context.error(
                    "\(quoted(text)) is not a limit: write \(example(unit)), \"unlimited\" or \"SOFT:HARD\"",
                    at: node.position
                )
                return nil
            }
            guard soft <= hard else {
                context.error("the soft limit of \(quoted(text)) is above the hard one", at: node.position)
                return nil
            }
            return (soft, hard)
        case .table, .array, .double, .boolean, .date: return context.expected("an integer or a string", node)
        }
    }

    private static func example(_ unit: LimitUnit) -> String {
        switch unit {
        case .bytes: "\"64MiB\""
        case .number, .tasks: "4096"
        case .seconds, .microseconds: "\"5s\""
        }
    }

    private static func amount(_ text: String, _ unit: LimitUnit) -> UInt64? {
        if text == "unlimited" || text == "infinity" { return .max }
        let isDigits = !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        if isDigits { return UInt64(text) }
        switch unit {
        case .number, .tasks: return nil
        case .bytes: return try? Quantity.size(text)
        case .seconds: return (try? Quantity.duration(text)).map { UInt64($0.components.seconds) }
        case .microseconds:
            return (try? Quantity.duration(text)).map {
                UInt64($0.components.seconds) * 1_000_000 + UInt64($0.components.attoseconds / 1_000_000_000_000)
            }
        }
    }
}
