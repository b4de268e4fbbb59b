// SPDX-License-Identifier: Apache-2.0

package import TorporAPI

/// The apps' dependencies, as a tree for people and as DOT for graphviz.
package struct GraphPage {
    private let nodes: [String: GraphNode]
    private let names: [String]

    /// - Parameter chosen: show only these apps with their dependencies and dependents; if empty, show all apps.
    package init(_ all: [GraphNode], chosen: Set<String> = []) {
        let nodes = Dictionary(all.map { ($0.app, $0) }) { first, _ in first }
        guard !chosen.isEmpty else {
            self.nodes = nodes
            names = all.map(\.app)
            return
        }
        var needed = chosen
        var pending = Array(chosen)
        while let next = pending.popLast() {
            for name in Self.needs(nodes[next]).map(\.name) where needed.insert(name).inserted { pending.append(name) }
        }
        var needing = chosen
        pending = Array(chosen)
        while let next = pending.popLast() {
            for node in all where Self.needs(node).contains(where: { $0.name == next }) {
                if needing.insert(node.app).inserted { pending.append(node.app) }
            }
        }
        let shown = needed.union(needing)
        self.nodes = nodes.filter { shown.contains($0.key) }
        names = all.map(\.app).filter(shown.contains)
    }

    package var shown: [GraphNode] { names.compactMap { nodes[$0] } }

    /// The app's dependencies, required ones first.
    private static func needs(_ node: GraphNode?) -> [(name: String, isRequired: Bool)] {
        guard let node else { return [] }
        let after = node.after.filter { !node.requires.contains($0) }
        return node.requires.map { ($0, true) } + after.map { ($0, false) }
    }

    /// The dependencies that are shown.
    private func needs(of name: String) -> [(name: String, isRequired: Bool)] {
        Self.needs(nodes[name]).filter { nodes[$0.name] != nil }
    }

    /// A tree below each app that no other app needs. The dependencies of an app are printed once; repetitions are
    /// marked.
    package var text: String {
        var isNeeded: Set<String> = []
        for name in names { isNeeded.formUnion(needs(of: name).map(\.name)) }
        var shown: Set<String> = []
        var text = ""
        for name in names where !isNeeded.contains(name) {
            text += label(name) + "\n"
            shown.insert(name)
            appendNeeds(of: name, "", &shown, &text)
        }
        return text
    }

    private func appendNeeds(of name: String, _ indent: String, _ shown: inout Set<String>, _ text: inout String) {
        let mine = needs(of: name)
        for (index, need) in mine.enumerated() {
            let isLast = index == mine.count - 1
            text += Terminal.coloured(indent + (isLast ? "└─ " : "├─ "), .dim)
            text += Terminal.coloured(need.isRequired ? "requires " : "after ", .dim) + label(need.name)
            let isNew = shown.insert(need.name).inserted
            let hasMore = !isNew && !needs(of: need.name).isEmpty
            text += (hasMore ? Terminal.coloured(" (as above)", .dim) : "") + "\n"
            if isNew { appendNeeds(of: need.name, indent + (isLast ? "   " : "│  "), &shown, &text) }
        }
    }

    private func label(_ name: String) -> String {
        guard let node = nodes[name] else { return Terminal.harmless(name) }
        let state = node.failed ? "failed" : node.state
        let colour = Terminal.colour(ofState: node.state, failed: node.failed)
        return Terminal.coloured(Terminal.harmless(name), .bold) + " " + Terminal.coloured(state, colour)
    }

    /// The graph for `dot -Tsvg`: a solid edge for a requirement, a dashed edge if only the order matters.
    package var dot: String {
        var text =
            "digraph torpor {\n  rankdir=LR\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"]\n"
        for name in names {
            guard let node = nodes[name] else { continue }
            let state = node.failed ? "failed" : node.state
            text +=
                "  \(Self.quoted(name)) [label=\(Self.quoted(name + "\n" + state)), fillcolor=\"\(Self.fill(node))\"]\n"
        }
        for name in names {
            for need in needs(of: name) {
                text += "  \(Self.quoted(name)) -> \(Self.quoted(need.name))"
                text += (need.isRequired ? "" : " [style=dashed]") + "\n"
            }
        }
        return text + "}\n"
    }

    private static func fill(_ node: GraphNode) -> String {
        if node.failed { return "#f4b6a8" }
        return switch node.state {
        case "active": "#a8ddc9"
        case "inactive": "#f7f1a5"
        case "background": "#bfe0f5"
        case "suspended": "#a9c9e4"
        default: "#e6e6e6"
        }
    }

    private static func quoted(_ text: String) -> String {
        let escaped = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            Terminal.harmless(String(line)).split(separator: "\\", omittingEmptySubsequences: false)
                .joined(separator: "\\\\").split(separator: "\"", omittingEmptySubsequences: false)
                .joined(separator: "\\\"")
        }
        return "\"" + escaped.joined(separator: "\\n") + "\""
    }
}
