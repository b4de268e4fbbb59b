import Configuration

/// A compose file: the commands of its services, without their containers.
enum Compose {
    static func read(_ text: String, _ tree: SourceTree, into result: inout ImportedConfiguration) throws(ImportError) {
        let root: DataNode
        do throws(ImportError) {
            root = try YAML.parse(text)
        } catch {
            throw ImportError("\(result.source): \(error.description)")
        }
        guard let members = root.members else {
            throw ImportError("\(result.source): a compose file is a table with services, and this is \(root.kind)")
        }
        let folder = SourceTree.folder(result.source)
        let variables = variables(folder, tree)
        // Files of the first version have the services without a table around them.
        let isOld = root["services"] == nil && members.contains { $0.node["image"] != nil || $0.node["build"] != nil }
        guard let services = isOld ? members : root["services"]?.members else {
            throw ImportError("\(result.source): there is no table services in it")
        }
        for (key, node) in members where !isOld && !key.hasPrefix("x-") {
            switch key {
            case "services", "version", "name": break
            case "volumes", "networks":
                result.remark(
                    "\(key) are not translated: a program runs with the files and the network of the machine.",
                    line: node.line
                )
            case "secrets", "configs":
                result.remark("\(key) are not translated: give the programs paths of the machine.", line: node.line)
            default: result.remark("\(key) is not translated.", line: node.line)
            }
        }
        for (name, node) in services {
            var program = ImportedProgram(name, line: node.line)
            var extender = ComposeExtension(folder: folder, services: services, tree: tree)
            guard node.members != nil, let merged = extender.merged(node, depth: 0) else {
                program.cannot(extender.problem ?? "it is \(node.kind), and no table")
                result.programs.append(program)
                continue
            }
            var interpolation = ComposeInterpolation(variables: variables)
            let whole = merged.mapTexts { interpolation.expand($0) }
            ComposeService(node: whole, folder: folder, variables: variables, program: program).read(into: &program)
            if program.isTranslated {
                for name in interpolation.missing {
                    program.remark("the variable \(name) is not set here, and is taken as empty")
                }
                for name in interpolation.wanted {
                    program.remark("the variable \(name) must be set, and is not: it is taken as empty")
                }
            }
            result.programs.append(program)
        }
        completed(&result)
    }

    /// What others wait for the end of is a oneshot.
    private static func completed(_ result: inout ImportedConfiguration) {
        let names = Set(result.programs.flatMap(\.completed))
        for index in result.programs.indices where names.contains(result.programs[index].name) {
            result.programs[index]["type"] = .string("oneshot")
            result.programs[index]["launch_deadline"] = .string("none")
        }
    }

    /// The caller's, over those of the file `.env`.
    private static func variables(_ folder: String, _ tree: SourceTree) -> [String: String] {
        var variables: [String: String] = [:]
        let path = folder + "/.env"
        if let bytes = tree.read(path), let found = try? EnvironmentFile.parse(bytes, file: path) {
            for (name, value) in found { variables[name] = value }
        }
        return variables.merging(tree.variables) { _, own in own }
    }
}

/// Services that begin with what another one says.
struct ComposeExtension {
    let folder: String
    let services: [(key: String, node: DataNode)]
    let tree: SourceTree
    private(set) var problem: String?

    init(folder: String, services: [(key: String, node: DataNode)], tree: SourceTree) {
        self.folder = folder
        self.services = services
        self.tree = tree
    }

    /// The service with what it extends.
    mutating func merged(_ node: DataNode, depth: Int) -> DataNode? {
        guard let rule = node["extends"], !rule.isNull else { return node }
        guard depth < 16 else {
            problem = "what it extends extends itself"
            return nil
        }
        guard let name = rule.text ?? rule["service"]?.text else {
            problem = "extends names no service"
            return nil
        }
        var base: DataNode?
        if let file = rule["file"]?.text {
            let path = SourceTree.join(folder, file)
            guard let text = tree.text(path), let root = try? YAML.parse(text),
                let found = root["services"]?.members?.first(where: { $0.key == name })?.node
            else {
                problem = "it extends \(quoted(name)) of \(file), which cannot be read"
                return nil
            }
            var other = ComposeExtension(
                folder: SourceTree.folder(path),
                services: root["services"]?.members ?? [],
                tree: tree
            )
            base = other.merged(found, depth: depth + 1)
            problem = other.problem
        } else if let found = services.first(where: { $0.key == name })?.node {
            base = merged(found, depth: depth + 1)
        } else {
            problem = "it extends \(quoted(name)), which is not there"
        }
        guard let base else { return nil }
        return Self.merge(base, node)
    }

    /// Tables become one; of all else what stands in the service itself counts, but for lists that go together.
    private static func merge(_ base: DataNode, _ own: DataNode) -> DataNode {
        guard var members = base.members, let others = own.members else { return own }
        for (key, node) in others where key != "extends" {
            guard let index = members.firstIndex(where: { $0.key == key }) else {
                members.append((key, node))
                continue
            }
            let before = members[index].node
            let together = ["environment", "depends_on", "labels", "env_file", "profiles", "volumes", "ports", "tmpfs"]
            if together.contains(key), let first = before.list, let second = node.list {
                members[index].node.value = .list(first + second)
            } else if let first = before.list ?? nil, together.contains(key), let second = node.members {
                members[index].node.value = .map(asMembers(first) + second)
            } else if let first = before.members, together.contains(key), let second = node.list {
                members[index].node.value = .map(first + asMembers(second))
            } else if before.members != nil, node.members != nil {
                members[index].node = merge(before, node)
            } else {
                members[index].node = node
            }
        }
        return DataNode(value: .map(members), line: own.line)
    }

    /// `NAME=value` and `NAME` of a list as a table has them.
    private static func asMembers(_ list: [DataNode]) -> [(key: String, node: DataNode)] {
        list.compactMap { node in
            guard let text = node.text else { return nil }
            guard let equals = text.firstIndex(of: "=") else { return (text, DataNode(value: .null, line: node.line)) }
            let value = String(text[text.index(after: equals)...])
            return (String(text[..<equals]), DataNode(value: .scalar(value, isPlain: false), line: node.line))
        }
    }
}
