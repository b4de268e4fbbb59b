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
        /// The variables for interpolation.
        var variables: [String: String] = [:]
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
        var base = try merged(found, in: source, depth: depth + 1)
        if source.folder != services.folder { base = Self.rooted(base, at: source.folder) }
        count += base.memberCount
        guard count <= Self.countLimit else {
            throw Failure(
                message: "extends adds more than \(Self.countLimit) values: import the file in parts"
            )
        }
        return ComposeMerge.service(base, node)
    }

    /// The service with absolute paths instead of relative ones, which begin at the folder of the service's own file.
    static func rooted(_ service: DataNode, at folder: String) -> DataNode {
        guard var keys = service.members else { return service }
        keys["volumes"] = keys["volumes"]?.mapElements { volume in
            guard volume.text == nil else { return volume.isPath ? volume.joined(to: folder) : volume }
            let isBind = volume["type"]?.text == "bind"
            return volume.mapMembers(["source", "src"]) { isBind || $0.isPath ? $0.joined(to: folder) : $0 }
        }
        keys["env_file"] = keys["env_file"]?.mapElements { file in
            file.text == nil ? file.mapMembers(["path"]) { $0.joined(to: folder) } : file.joined(to: folder)
        }
        if let build = keys["build"], !build.isNull {
            func context(_ node: DataNode) -> DataNode {
                ComposeContainer.isRemote(node.text ?? "") ? node : node.joined(to: folder)
            }
            var other = build.text == nil ? build.mapMembers(["context"], context) : context(build)
            if var members = other.members, members["context"] == nil {
                var usual = build
                usual.value = .scalar(folder, isPlain: false)
                members["context"] = usual
                other.value = .map(members)
            }
            keys["build"] = other
        }
        var rooted = service
        rooted.value = .map(keys)
        return rooted
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
    /// Whether the text of a volume begins with a relative path, not with a volume's name.
    fileprivate var isPath: Bool { text?.utf8.first == UInt8(ascii: ".") }

    /// The path with the folder before it. An absolute path stays as it is, and so do the path of a user's home and one
    /// that begins with a variable, whose value is not known yet.
    fileprivate func joined(to folder: String) -> DataNode {
        guard case .scalar(let text, let isPlain) = value, let first = text.utf8.first,
            ![UInt8(ascii: "/"), UInt8(ascii: "~"), UInt8(ascii: "$")].contains(first)
        else { return self }
        var node = self
        // The options of a volume stay as they are: a path has no colon.
        let path = text.prefix { $0 != ":" }
        node.value = .scalar(SourceTree.join(folder, String(path)) + text.dropFirst(path.count), isPlain: isPlain)
        return node
    }

    /// The list with every element changed; a value that is no list is changed itself.
    fileprivate func mapElements(_ change: (DataNode) -> DataNode) -> DataNode {
        guard let list else { return isNull ? self : change(self) }
        var node = self
        node.value = .list(list.map(change))
        return node
    }

    /// The table with the members of these names changed.
    fileprivate func mapMembers(_ names: [String], _ change: (DataNode) -> DataNode) -> DataNode {
        guard var members else { return self }
        for name in names { members[name] = members[name].map(change) }
        var node = self
        node.value = .map(members)
        return node
    }

    /// How many values the node contains, including itself.
    fileprivate var memberCount: Int {
        switch value {
        case .null, .scalar: 1
        case .list(let elements): elements.reduce(1) { $0 + $1.memberCount }
        case .map(let members): members.reduce(1) { $0 + $1.value.memberCount }
        }
    }
}
