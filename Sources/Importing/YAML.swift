// SPDX-License-Identifier: Apache-2.0

import CYAML
import WireText

/// Parses YAML with libyaml. This C library of about a hundred kilobytes is part of every distribution, which maintains
/// it; a Swift package would contain its own copy.
enum YAML {
    /// The maximum nesting of values.
    private static let depthLimit = 64
    /// The maximum number of values, including those that aliases repeat: a small file with nested aliases could
    /// otherwise use up the memory.
    private static let countLimit = 200_000
    /// The maximum number of bytes of text that aliases repeat.
    private static let repeatedLimit = 1 << 20

    /// Parses the first document of a text.
    ///
    /// - Parameters:
    ///   - language: the name of the language, for error messages.
    ///   - file: the name of the file, if it is not the imported file itself.
    static func parse(
        _ text: String,
        as language: String = "YAML",
        of file: String? = nil
    ) throws(ImportError) -> DataNode {
        var builder = Builder(text, language, file)
        defer { builder.end() }
        return try builder.document()
    }

    private struct Builder {
        private let parser: UnsafeMutablePointer<yaml_parser_t>
        private let bytes: UnsafeMutableBufferPointer<UInt8>
        private var anchors: [String: DataNode] = [:]
        private var count = 0
        private var repeated = 0

        private let language: String
        private let file: String?

        init(_ text: String, _ language: String, _ file: String?) {
            self.language = language
            self.file = file
            parser = .allocate(capacity: 1)
            let utf8 = Array(text.utf8)
            bytes = .allocate(capacity: max(1, utf8.count))
            _ = bytes.update(fromContentsOf: utf8)
            yaml_parser_initialize(parser)
            yaml_parser_set_input_string(parser, bytes.baseAddress, utf8.count)
            yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        }

        func end() {
            yaml_parser_delete(parser)
            parser.deallocate()
            bytes.deallocate()
        }

        /// An event of the parser. It does not refer to memory of libyaml, so it stays valid.
        private enum Event {
            case alias(String)
            case scalar(String, isPlain: Bool, anchor: String?, tag: DataNode.Tag?)
            case list(anchor: String?, tag: DataNode.Tag?)
            case map(anchor: String?, tag: DataNode.Tag?)
            case end
            case other
            case over
        }

        private mutating func next() throws(ImportError) -> (event: Event, line: Int) {
            var event = yaml_event_t()
            guard yaml_parser_parse(parser, &event) == 1 else {
                let problem = parser.pointee.problem.map { String(terminatedWire: $0) } ?? "it is not \(language)"
                let line = parser.pointee.problem_mark.line + 1
                throw ImportError("line \(line) is not \(language): \(problem)")
            }
            defer { yaml_event_delete(&event) }
            let line = Int(event.start_mark.line) + 1
            func text(_ start: UnsafeMutablePointer<yaml_char_t>?) -> String? {
                start.map { String(terminatedWire: UnsafePointer<UInt8>($0)) }
            }
            func tag(_ name: String?) -> DataNode.Tag? {
                switch name {
                case "!reset": .reset
                case "!override": .override
                default: nil
                }
            }
            switch event.type {
            case YAML_ALIAS_EVENT: return (.alias(text(event.data.alias.anchor) ?? ""), line)
            case YAML_SCALAR_EVENT:
                let scalar = event.data.scalar
                let bytes = UnsafeBufferPointer(start: scalar.value, count: scalar.length)
                let isPlain = scalar.style == YAML_PLAIN_SCALAR_STYLE && scalar.tag == nil
                return (
                    .scalar(
                        String(wire: bytes),
                        isPlain: isPlain,
                        anchor: text(scalar.anchor),
                        tag: tag(text(scalar.tag))
                    ), line
                )
            case YAML_SEQUENCE_START_EVENT:
                let start = event.data.sequence_start
                return (.list(anchor: text(start.anchor), tag: tag(text(start.tag))), line)
            case YAML_MAPPING_START_EVENT:
                let start = event.data.mapping_start
                return (.map(anchor: text(start.anchor), tag: tag(text(start.tag))), line)
            case YAML_SEQUENCE_END_EVENT, YAML_MAPPING_END_EVENT: return (.end, line)
            case YAML_STREAM_END_EVENT, YAML_DOCUMENT_END_EVENT: return (.over, line)
            default: return (.other, line)
            }
        }

        mutating func document() throws(ImportError) -> DataNode {
            while true {
                let (event, line) = try next()
                if case .over = event { return DataNode(value: .null, line: line) }
                if case .other = event { continue }
                return try node(event, line, depth: 0) ?? DataNode(value: .null, line: line)
            }
        }

        /// Reads the value that begins with an event; nil if the event ends a list or table.
        private mutating func node(_ event: Event, _ line: Int, depth: Int) throws(ImportError) -> DataNode? {
            count += 1
            guard depth < YAML.depthLimit, count < YAML.countLimit, repeated < YAML.repeatedLimit else {
                throw ImportError("line \(line): it is nested too deeply, or has too many values")
            }
            var node = DataNode(value: .null, line: line, file: file)
            let name: String?
            switch event {
            case .end, .over, .other: return nil
            case .alias(let anchor):
                guard let known = anchors[anchor] else {
                    throw ImportError("line \(line): there is no anchor &\(anchor) before it")
                }
                measure(known)
                return known
            case .scalar(let text, let isPlain, let anchor, let tag):
                name = anchor
                node.tag = tag
                let isNull = isPlain && ["", "~", "null", "Null", "NULL"].contains(text)
                node.value = isNull ? .null : .scalar(text, isPlain: isPlain)
            case .list(let anchor, let tag):
                name = anchor
                node.tag = tag
                var elements: [DataNode] = []
                while let element = try child(depth) { elements.append(element) }
                node.value = .list(elements)
            case .map(let anchor, let tag):
                name = anchor
                node.tag = tag
                node.value = .map(try members(depth))
            }
            if let name { anchors[name] = node }
            return node
        }

        private mutating func child(_ depth: Int) throws(ImportError) -> DataNode? {
            let (event, line) = try next()
            return try node(event, line, depth: depth + 1)
        }

        private mutating func members(_ depth: Int) throws(ImportError) -> OrderedTable<DataNode> {
            var members = OrderedTable<DataNode>()
            var merged = OrderedTable<DataNode>()
            while let key = try child(depth) {
                let value = try child(depth) ?? DataNode(value: .null, line: key.line)
                if key.text == "<<" {
                    for source in value.list ?? [value] {
                        for (name, node) in source.members ?? [] where merged[name] == nil { merged[name] = node }
                    }
                } else if let name = key.text ?? (key.isNull ? "" : nil) {
                    members[name] = value
                } else {
                    throw ImportError("line \(key.line): a name is \(key.kind), but must be a string")
                }
            }
            for (name, node) in merged where members[name] == nil { members[name] = node }
            return members
        }

        /// Adds the size of a value that an alias repeats to the counters, so that their limits apply.
        private mutating func measure(_ node: DataNode) {
            count += 1
            switch node.value {
            case .null: break
            case .scalar(let text, _): repeated += text.utf8.count
            case .list(let elements): for element in elements { measure(element) }
            case .map(let members):
                for (name, node) in members {
                    repeated += name.utf8.count
                    measure(node)
                }
            }
        }
    }
}
