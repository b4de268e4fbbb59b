// SPDX-License-Identifier: Apache-2.0

import WireText

/// Merges a compose file over another file, or a service over the service that it extends, by the rules of the compose
/// specification. The tags `!reset` and `!override` stay in the result, because later merges need them;
/// ``DataNode/withoutReset`` applies `!reset` at the end.
enum ComposeMerge {
    /// Merges a whole compose file over another one.
    static func files(_ base: DataNode, _ own: DataNode) -> DataNode {
        merged(base, own) { key, first, second in
            guard key == "services" else { return usual(first, second) }
            return merged(first, second) { _, first, second in service(first, second) }
        }
    }

    /// Merges a service over another one.
    static func service(_ base: DataNode, _ own: DataNode) -> DataNode {
        merged(base, own) { key, first, second in
            switch key {
            case "command", "entrypoint": second
            case "environment", "labels", "annotations", "sysctls", "extra_hosts": pairs(first, second)
            case "depends_on", "networks": usual(table(first), table(second))
            case "ports": elements(first, second, by: port)
            case "volumes", "devices": elements(first, second, by: target)
            case "secrets", "configs": elements(first, second, by: file)
            case "dns", "dns_opt", "dns_search", "tmpfs", "env_file", "label_file":
                elements(list(first), list(second), by: \.text)
            case "build": build(first, second)
            case "healthcheck": merged(first, second) { $0 == "test" ? $2 : usual($1, $2) }
            case "logging": sameDriver(first, second) ? usual(first, second) : second
            case "deploy": merged(first, second) { $0 == "labels" ? pairs($1, $2) : usual($1, $2) }
            default: usual(first, second)
            }
        }
    }

    /// Merges two tables. `change` merges members that are in both tables.
    private static func merged(
        _ base: DataNode,
        _ own: DataNode,
        _ change: (String, DataNode, DataNode) -> DataNode
    ) -> DataNode {
        guard own.tag == nil, base.tag != .reset, var members = base.members, let others = own.members else {
            return own
        }
        for (key, node) in others {
            guard let before = members[key] else {
                members[key] = node
                continue
            }
            members[key] = node.tag != nil || before.tag == .reset ? node : change(key, before, node)
        }
        var node = own
        node.value = .map(members)
        return node
    }

    /// Applies the rule for most values: merges tables, concatenates lists, and replaces other values by the later
    /// one.
    private static func usual(_ base: DataNode, _ own: DataNode) -> DataNode {
        if base.list != nil, own.list != nil { return elements(base, own, by: \.text) }
        return merged(base, own) { usual($1, $2) }
    }

    /// Concatenates two lists. A later element replaces an earlier one with the same name.
    private static func elements(_ base: DataNode, _ own: DataNode, by name: (DataNode) -> String?) -> DataNode {
        guard let first = base.list, let second = own.list else { return own }
        var elements: [DataNode] = []
        var places: [WireText: Int] = [:]
        for element in first + second {
            let name = name(element).map(WireText.init)
            if let place = name.flatMap({ places[$0] }) {
                elements[place] = element
                continue
            }
            if let name { places[name] = elements.count }
            elements.append(element)
        }
        var node = own
        node.value = .list(elements)
        return node
    }

    private static func pairs(_ base: DataNode, _ own: DataNode) -> DataNode {
        usual(members(base), members(own))
    }

    private static func build(_ base: DataNode, _ own: DataNode) -> DataNode {
        func whole(_ node: DataNode) -> DataNode {
            guard node.text != nil else { return node }
            var table = node
            table.value = .map([("context", node)])
            return table
        }
        return merged(whole(base), whole(own)) {
            ["args", "labels", "additional_contexts"].contains($0) ? pairs($1, $2) : usual($1, $2)
        }
    }

    private static func sameDriver(_ base: DataNode, _ own: DataNode) -> Bool {
        guard let driver = own["driver"]?.text else { return true }
        return base["driver"]?.text?.utf8.elementsEqual(driver.utf8) ?? true
    }

    // MARK: Other forms of the same

    /// Converts a text to a list with one element.
    private static func list(_ node: DataNode) -> DataNode {
        guard node.text != nil else { return node }
        var list = node
        list.value = .list([node])
        return list
    }

    /// Converts a list of names to a table whose members have no values.
    private static func table(_ node: DataNode) -> DataNode {
        guard let elements = node.list else { return node }
        var table = node
        let names = elements.compactMap { element in
            element.text.map { ($0, DataNode(value: .null, line: element.line, file: element.file)) }
        }
        table.value = .map(OrderedTable(names.map { (key: $0.0, value: $0.1) }))
        return table
    }

    /// Converts a list of `NAME=value` and `NAME` to a table.
    private static func members(_ node: DataNode) -> DataNode {
        guard let elements = node.list else { return node }
        var members = OrderedTable<DataNode>()
        for element in elements {
            guard let text = element.text else { continue }
            var value = DataNode(value: .null, line: element.line, file: element.file)
            guard let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")) else {
                members[text] = value
                continue
            }
            value.value = .scalar(String(text[text.utf8.index(after: equals)...]), isPlain: false)
            members[String(text[..<equals])] = value
        }
        var table = node
        table.value = .map(members)
        return table
    }

    // MARK: What an element is known by

    /// Identifies a published port: its address, its two port numbers and its protocol.
    private static func port(_ node: DataNode) -> String? {
        if node.members != nil {
            let parts = [node["host_ip"]?.text, node["published"]?.text, node["target"]?.text]
            return parts.map { $0 ?? "" }.joined(separator: "|") + "|" + (node["protocol"]?.text ?? "tcp")
        }
        guard let text = node.text else { return nil }
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        var fields = (parts.first ?? "").split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        let inside = fields.popLast() ?? ""
        let outside = fields.popLast() ?? ""
        return [fields.joined(separator: ":"), outside, inside, parts.count > 1 ? String(parts[1]) : "tcp"].joined(
            separator: "|"
        )
    }

    /// Identifies a volume: its path in the container.
    private static func target(_ node: DataNode) -> String? {
        if node.members != nil { return node["target"]?.text ?? node["destination"]?.text ?? node["dst"]?.text }
        guard let fields = node.text?.split(separator: ":", omittingEmptySubsequences: false) else { return nil }
        return fields.count > 1 ? String(fields[1]) : fields.first.map(String.init)
    }

    private static func file(_ node: DataNode) -> String? {
        node.text ?? node["target"]?.text ?? node["source"]?.text
    }
}

extension DataNode {
    /// The node without the values that are tagged `!reset`.
    var withoutReset: DataNode {
        var node = self
        switch value {
        case .null, .scalar: break
        case .list(let elements): node.value = .list(elements.filter { $0.tag != .reset }.map(\.withoutReset))
        case .map(let members):
            node.value = .map(members.filtered { $0.value.tag != .reset }.mapValues(\.withoutReset))
        }
        return node
    }
}
