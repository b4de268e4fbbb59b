// SPDX-License-Identifier: Apache-2.0

import WireText

/// The table `snapshot`: how torpord gets snapshots (pictures or texts of what the app shows).
public struct SnapshotSpecification: Sendable, Hashable {
    /// The source of a snapshot.
    public enum Source: Sendable, Hashable {
        /// The snapshot is the standard output of this command.
        case command([String])
        /// The response to a GET request. The path begins with `/` and includes the query.
        case http(host: String, port: UInt16, path: String)
        /// The snapshot is a file that belongs to the app's user, given by its absolute path.
        case file(String)
    }

    /// The source of the snapshot.
    public var source: Source
    /// The maximum time that getting the snapshot may take. During this time the app is not suspended.
    public var deadline: Duration = .seconds(5)

    /// Creates a specification with the default deadline.
    public init(_ source: Source) { self.source = source }
}

/// Reads `snapshot`.
enum SnapshotReader {
    /// The keys for the source of a snapshot. The table has exactly one of these keys.
    private static let sources = ["command", "http", "file"]
    private static let keys = sources + ["deadline"]
    private static let expected = "a command as an array of strings, a table with command, http or file, or \"none\""

    /// Reads `snapshot`. The result is nil for `"none"`, and after an error.
    static func snapshot(_ context: Context, _ node: Node) -> SnapshotSpecification? {
        switch node.value {
        case .string("none"): return nil
        case .array: return Read.command(context, node).map { SnapshotSpecification(.command($0)) }
        case .table(let members): return table(context, node, members)
        case .string, .integer, .double, .boolean, .date: return context.expected(expected, node)
        }
    }

    private static func table(_ context: Context, _ node: Node, _ members: [Member]) -> SnapshotSpecification? {
        var found: [SnapshotSpecification.Source?] = []
        var deadline: Duration?
        var isKnown = true
        for member in members {
            let inner = context.at(member.key)
            switch member.key {
            case "command": found.append(Read.command(inner, member.node).map { .command($0) })
            case "http":
                found.append(
                    ReadyReader.address(inner, member.node).map { .http(host: $0.host, port: $0.port, path: $0.path) }
                )
            case "file": found.append(Read.path(inner, member.node).map { .file($0) })
            case "deadline": deadline = Read.positiveDuration(inner, member.node)
            default:
                isKnown = false
                Read.unknown(inner, member, among: keys)
            }
        }
        guard isKnown else { return nil }
        guard found.count == 1 else {
            context.error("needs exactly one of command, http and file", at: node.position)
            return nil
        }
        guard let source = found[0] else { return nil }
        var snapshot = SnapshotSpecification(source)
        if let deadline { snapshot.deadline = deadline }
        return snapshot
    }
}

extension SnapshotSpecification: Written {
    var written: String? {
        let text =
            switch source {
            case .command(let words): "command \(words.joined(separator: " "))"
            case .http(let host, let port, let path): "http://\(host):\(port)\(path)"
            case .file(let path): "file \(path)"
            }
        return deadline == .seconds(5) ? text : text + ", deadline \(Quantity.text(deadline))"
    }
}
