// SPDX-License-Identifier: Apache-2.0

import WireText

/// A sentence about what became of something.
public struct Remark: Sendable, Hashable {
    /// The sentence.
    public var text: String
    /// Where it stands in the source, where that is known.
    public var line: Int?
    /// The name of the file that the line is of; nil for the source itself.
    public var file: String?

    init(_ text: String, at place: SourceLine?) {
        self.text = text
        line = place?.number
        file = place?.file
    }

    /// Whether both say the same.
    public static func == (one: Remark, other: Remark) -> Bool {
        one.line == other.line && WireText(one.text) == WireText(other.text)
            && one.file.map(WireText.init) == other.file.map(WireText.init)
    }

    /// By what it says.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(line)
        hasher.combine(WireText(text))
        hasher.combine(file.map(WireText.init))
    }
}

/// Where something stands.
struct SourceLine: Sendable, Hashable {
    var number: Int
    /// The name of its file, where it is not the source itself.
    var file: String?

    init(_ number: Int, of file: String? = nil) {
        self.number = number
        self.file = file
    }
}

/// Sentences in their order, each once.
struct Remarks: Sendable {
    private(set) var list: [Remark] = []
    private var known: Set<Remark> = []

    mutating func add(_ remark: Remark) {
        if known.insert(remark).inserted { list.append(remark) }
    }
}

/// Keys that nothing is made of: those that are left out for the same reason are one sentence.
struct LeftOutKeys {
    private var groups: [(reason: String, keys: OrderedTable<Void>, place: SourceLine?)] = []
    private var places: [String: Int] = [:]

    mutating func add(_ key: String, because reason: String, at place: SourceLine? = nil) {
        let index = places[reason] ?? groups.count
        if index == groups.count {
            places[reason] = index
            groups.append((reason, OrderedTable(), place))
        }
        groups[index].keys[key] = ()
    }

    /// The sentences, each with the place of its first key.
    ///
    /// - Parameter owner: what the keys are of, as in “of [supervisord]”; empty where that is clear.
    func sentences(of owner: String = "") -> [(text: String, place: SourceLine?)] {
        groups.map { reason, keys, place in
            let names = keys.members.map(\.key)
            let verb = names.count > 1 ? "are" : "is"
            return (Self.list(names) + (owner.isEmpty ? "" : " " + owner) + " \(verb) left out: \(reason)", place)
        }
    }

    static func list(_ names: [String]) -> String {
        guard let last = names.last, names.count > 1 else { return names.first ?? "" }
        return names.dropLast().joined(separator: ", ") + " and " + last
    }
}
