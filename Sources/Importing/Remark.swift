// SPDX-License-Identifier: Apache-2.0

import WireText

/// A sentence about how a part of the source was translated, or why it was not. In torpor.toml, the sentence becomes a
/// comment.
public struct Remark: Sendable, Hashable {
    /// The sentence.
    public var text: String
    /// The line in the source that the remark is about; nil if unknown.
    public var line: Int?
    /// The name of the file that contains this line; nil for the imported file itself.
    public var file: String?

    init(_ text: String, at place: SourceLine?) {
        self.text = text
        line = place?.number
        file = place?.file
    }

    /// Whether two remarks have the same text and place. Texts are compared by their bytes.
    public static func == (one: Remark, other: Remark) -> Bool {
        one.line == other.line && WireText(one.text) == WireText(other.text)
            && one.file.map(WireText.init) == other.file.map(WireText.init)
    }

    /// Hashes the text and the place.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(line)
        hasher.combine(WireText(text))
        hasher.combine(file.map(WireText.init))
    }
}

/// A line of the source.
struct SourceLine: Sendable, Hashable {
    var number: Int
    /// The name of the file that contains the line; nil for the imported file itself.
    var file: String?

    init(_ number: Int, of file: String? = nil) {
        self.number = number
        self.file = file
    }
}

/// Remarks in the order in which they were added, without duplicates.
struct Remarks: Sendable {
    private(set) var list: [Remark] = []
    private var known: Set<Remark> = []

    mutating func add(_ remark: Remark) {
        if known.insert(remark).inserted { list.append(remark) }
    }
}

/// Keys that are not translated. All keys with the same reason are named in one sentence.
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

    /// The sentences, each with the place of the first key that the sentence names.
    ///
    /// - Parameter owner: where the keys come from, such as “of [supervisord]”; empty if the reader knows that.
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
