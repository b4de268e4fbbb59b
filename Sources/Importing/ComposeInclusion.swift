// SPDX-License-Identifier: Apache-2.0

import WireText

/// Reads the files that `include` names. Each belongs to the same project, but has a folder and variables of its own.
struct ComposeInclusion {
    private let tree: SourceTree
    /// The services, with one element for each entry of `include`.
    private(set) var files: [ComposeExtension.Services] = []
    /// The networks, volumes, secrets and configs, with absolute paths and without variables.
    private(set) var resources = OrderedTable<DataNode>()
    private(set) var remarks: [(text: String, place: SourceLine?)] = []
    private var seen: Set<WireText>

    static let resourceKeys = ["networks", "volumes", "secrets", "configs"]
    private static let limit = 64

    /// - Parameter source: the path of the imported file.
    init(_ root: DataNode, of source: String, _ tree: SourceTree, _ variables: [String: String]) {
        self.tree = tree
        seen = [WireText(source)]
        read(root, SourceTree.folder(source), variables)
    }

    private mutating func read(_ root: DataNode, _ folder: String, _ variables: [String: String]) {
        for entry in root["include"]?.list ?? [] {
            var interpolation = ComposeInterpolation(variables: variables)
            let rule = entry.mapTexts { interpolation.expand($0) }
            let paths = Self.texts(rule.text == nil ? rule["path"] : rule).map { SourceTree.join(folder, $0) }
            var nodes: [DataNode] = []
            // Read each file only once, even if several files include it.
            for path in paths where seen.insert(WireText(path)).inserted {
                guard seen.count <= Self.limit,
                    let node = tree.text(path).flatMap({ try? YAML.parse($0, of: SourceTree.lastPart(path)) }),
                    node.members != nil
                else {
                    remarks.append(
                        ("\(path), which is included, cannot be read: import it by itself.", entry.place)
                    )
                    continue
                }
                nodes.append(node)
            }
            guard let first = paths.first, let base = nodes.first else { continue }
            let whole = nodes.dropFirst().reduce(base, ComposeMerge.files)
            let inner = rule["project_directory"]?.text.map { SourceTree.join(folder, $0) } ?? SourceTree.folder(first)
            let named = Self.texts(rule["env_file"]).map { SourceTree.join(folder, $0) }
            let own = Compose.variables(of: named.isEmpty ? [inner + "/.env"] : named, tree)
            let all = own.merging(variables) { _, outer in outer }
            add(whole, inner, all)
            read(whole, inner, all)
        }
    }

    private mutating func add(_ root: DataNode, _ folder: String, _ variables: [String: String]) {
        if let services = root["services"]?.members {
            files.append(ComposeExtension.Services(folder: folder, nodes: services, variables: variables))
        }
        var interpolation = ComposeInterpolation(variables: variables)
        for key in Self.resourceKeys {
            guard let members = root.withoutReset[key]?.members else { continue }
            var all = resources[key]?.members ?? []
            for (name, node) in members where all[name] == nil {
                // The project expands variables once more, so a dollar sign is doubled.
                var node = node.mapTexts { interpolation.expand($0).replacing("$", with: "$$") }
                if let file = node["file"]?.text, var entry = node.members {
                    let path = SourceTree.join(folder, file)
                    entry["file"] = DataNode(value: .scalar(path, isPlain: false), line: node.line, file: node.file)
                    node.value = .map(entry)
                }
                all[name] = node
            }
            resources[key] = DataNode(value: .map(all), line: 0)
        }
    }

    /// The texts of a value that is a list or a single text.
    private static func texts(_ node: DataNode?) -> [String] {
        node.map { ($0.list ?? [$0]).compactMap(\.text) } ?? []
    }
}

extension DataNode {
    /// A compose file with the resources of included files, which replace none of its own.
    func including(_ resources: OrderedTable<DataNode>) -> DataNode {
        guard var members else { return self }
        for (key, node) in resources {
            guard var all = node.members else { continue }
            for (name, own) in members[key]?.members ?? [] { all[name] = own }
            members[key] = DataNode(value: .map(all), line: members[key]?.line ?? 0)
        }
        var root = self
        root.value = .map(members)
        return root
    }
}
