// SPDX-License-Identifier: Apache-2.0

/// A value of the options, or a table or list of them.
///
/// The supervisor passes tables and lists flattened, such as `rules.0.when`; this tree restores the structure.
final class OptionTree {
    /// A value of TOML.
    enum Value {
        case string(String)
        case integer(Int64)
        case number(Double)
        case boolean(Bool)
        case date(String)

        /// The value's type, for error messages.
        var kind: String {
            switch self {
            case .string: "a string"
            case .integer: "an integer"
            case .number: "a number"
            case .boolean: "a boolean"
            case .date: "a date"
            }
        }

        /// The value as TOML writes it.
        var written: String {
            switch self {
            case .string(let text): "\"\(text)\""
            case .integer(let integer): "\(integer)"
            case .number(let number): "\(number)"
            case .boolean(let boolean): "\(boolean)"
            case .date(let text): text
            }
        }
    }

    var value: Value?
    private(set) var children: [(key: String, tree: OptionTree)] = []

    /// Builds the tree from the supervisor's options.
    convenience init(_ options: UnsafePointer<torpor_policy_options>?) {
        self.init()
        guard let options, let first = options.pointee.options else { return }
        for index in 0..<Int(options.pointee.count) {
            let option = (first + index * Int(options.pointee.option_size))
                .assumingMemoryBound(to: torpor_policy_option.self)
            guard option.pointee.size >= MemoryLayout<torpor_policy_option>.size, let key = option.pointee.key
            else { continue }
            insert(Self.value(option.pointee), at: String(cString: key))
        }
    }

    private static func value(_ option: torpor_policy_option) -> Value {
        let text = option.text.map { String(cString: $0) } ?? ""
        switch torpor_policy_option_type(rawValue: option.type) {
        case TORPOR_OPTION_INTEGER: return .integer(option.integer)
        case TORPOR_OPTION_NUMBER: return .number(option.number)
        case TORPOR_OPTION_BOOLEAN: return .boolean(option.integer != 0)
        case TORPOR_OPTION_DATE: return .date(text)
        default: return .string(text)
        }
    }

    private func insert(_ value: Value, at path: String) {
        var tree = self
        for part in path.split(separator: ".", omittingEmptySubsequences: false) {
            if let child = tree[String(part)] {
                tree = child
            } else {
                let child = OptionTree()
                tree.children.append((String(part), child))
                tree = child
            }
        }
        tree.value = value
    }

    subscript(key: String) -> OptionTree? { children.first { $0.key == key }?.tree }

    /// The elements if this is a list, that is, a table whose keys are the numbers from 0, in any order; otherwise
    /// nil.
    var elements: [OptionTree]? {
        guard value == nil, !children.isEmpty else { return nil }
        var elements = [OptionTree?](repeating: nil, count: children.count)
        for (key, tree) in children {
            guard let index = Int(key), elements.indices.contains(index), elements[index] == nil else { return nil }
            elements[index] = tree
        }
        return elements.compactMap(\.self)
    }

    /// The type of the value, list or table, for error messages.
    var kind: String { value?.kind ?? (elements != nil ? "a list" : "a table") }
}
