// SPDX-License-Identifier: Apache-2.0

import WireText

/// Services that begin with what another one says.
final class ComposeExtension {
    private let tree: SourceTree
    /// Other files, each read once.
    private var files: [WireText: Services?] = [:]
    /// Members that services have of others, in all.
    private var count = 0

    /// As many as a file may have values.
    private static let countLimit = 200_000
    private static let depthLimit = 16

    /// The services of a file.
    struct Services {
        var folder: String
        var nodes: OrderedTable<DataNode>
    }

    struct Failure: Error {
        var message: String
    }

    init(tree: SourceTree) { self.tree = tree }

    /// The service with what it extends.
    func merged(_ node: DataNode, in services: Services, depth: Int = 0) throws(Failure) -> DataNode {
        guard let rule = node["extends"], !rule.isNull else { return node }
        guard depth < Self.depthLimit else { throw Failure(message: "its extends is circular or nested too deeply") }
        guard let name = rule.text ?? rule["service"]?.text else {
            throw Failure(message: "extends names no service")
        }
        var source = services
        if let file = rule["file"]?.text {
            guard let other = read(SourceTree.join(services.folder, file)), other.nodes[name] != nil else {
                throw Failure(message: "it extends \(quoted(name)) of \(file), which cannot be read")
            }
            source = other
        }
        guard let found = source.nodes[name] else {
            throw Failure(message: "it extends \(quoted(name)), which does not exist")
        }
        let base = try merged(found, in: source, depth: depth + 1)
        count += base.memberCount
        guard count <= Self.countLimit else {
            throw Failure(
                message: "extends adds more than \(Self.countLimit) values: import the file in parts"
            )
        }
        return Self.merge(base, node)
    }

    private func read(_ path: String) -> Services? {
        if let known = files[WireText(path)] { return known }
        var services: Services?
        if let text = tree.text(path), let nodes = (try? YAML.parse(text))?["services"]?.members {
            services = Services(folder: SourceTree.folder(path), nodes: nodes)
        }
        files[WireText(path)] = .some(services)
        return services
    }

    /// Keys of which both services' values count.
    private static let together: Set = [
        "environment", "depends_on", "labels", "env_file", "profiles", "volumes", "ports", "tmpfs",
    ]

    /// Tables become one; of all else what stands in the service itself counts, but for lists that go together.
    private static func merge(_ base: DataNode, _ own: DataNode) -> DataNode {
        guard var members = base.members, let others = own.members else { return own }
        for (key, node) in others where key != "extends" {
            guard let before = members[key] else {
                members[key] = node
                continue
            }
            var node = node
            if together.contains(key), let first = before.list, let second = node.list {
                node.value = .list(first + second)
            } else if together.contains(key), let first = before.list, let second = node.members {
                node.value = .map(OrderedTable(asMembers(first) + second.members))
            } else if together.contains(key), let first = before.members, let second = node.list {
                node.value = .map(OrderedTable(first.members + asMembers(second)))
            } else if before.members != nil, node.members != nil {
                node = merge(before, node)
            }
            members[key] = node
        }
        return DataNode(value: .map(members), line: own.line)
    }

    /// `NAME=value` and `NAME` of a list as a table has them.
    private static func asMembers(_ list: [DataNode]) -> [(key: String, value: DataNode)] {
        list.compactMap { node in
            guard let text = node.text else { return nil }
            guard let equals = text.firstIndex(of: "=") else { return (text, DataNode(value: .null, line: node.line)) }
            let value = String(text[text.index(after: equals)...])
            return (String(text[..<equals]), DataNode(value: .scalar(value, isPlain: false), line: node.line))
        }
    }
}

extension DataNode {
    /// How many values it is.
    fileprivate var memberCount: Int {
        switch value {
        case .null, .scalar: 1
        case .list(let elements): elements.reduce(1) { $0 + $1.memberCount }
        case .map(let members): members.reduce(1) { $0 + $1.value.memberCount }
        }
    }
}
