// SPDX-License-Identifier: Apache-2.0

import WireText

/// Resolves `extends`, by which a service inherits the keys of another service.
final class ComposeExtension {
    private let tree: SourceTree
    /// The other compose files that services extend. Each is read only once.
    private var files: [WireText: Services?] = [:]
    /// The number of values that all services together have inherited so far.
    private var count = 0

    /// The limit of `count`. It equals the number of values that a single file may contain.
    private static let countLimit = 200_000
    private static let depthLimit = 16

    /// The services of one compose file.
    struct Services {
        var folder: String
        var nodes: OrderedTable<DataNode>
    }

    struct Failure: Error {
        var message: String
    }

    init(tree: SourceTree) { self.tree = tree }

    /// The service, merged over the service that it extends.
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
        return ComposeMerge.service(base, node)
    }

    private func read(_ path: String) -> Services? {
        if let known = files[WireText(path)] { return known }
        var services: Services?
        if let text = tree.text(path),
            let nodes = (try? YAML.parse(text, of: SourceTree.lastPart(path)))?["services"]?.members
        {
            services = Services(folder: SourceTree.folder(path), nodes: nodes)
        }
        files[WireText(path)] = .some(services)
        return services
    }
}

extension DataNode {
    /// How many values the node contains, including itself.
    fileprivate var memberCount: Int {
        switch value {
        case .null, .scalar: 1
        case .list(let elements): elements.reduce(1) { $0 + $1.memberCount }
        case .map(let members): members.reduce(1) { $0 + $1.value.memberCount }
        }
    }
}
