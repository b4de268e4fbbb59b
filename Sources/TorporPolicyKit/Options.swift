// SPDX-License-Identifier: Apache-2.0

/// The options of a policy, or of one table among them. An error is a sentence that begins with the option's key.
public struct Options {
    private let tree: OptionTree
    private let path: String

    init(_ options: UnsafePointer<torpor_policy_options>?) {
        tree = OptionTree(options)
        path = ""
    }

    private init(_ tree: OptionTree, at path: String) {
        self.tree = tree
        self.path = path
    }

    /// The keys that are configured, in the order of the configuration.
    public var keys: [String] { tree.children.map(\.key) }

    /// Whether the option is configured.
    public func has(_ key: String) -> Bool { tree[key] != nil }

    /// Creates an error about an option: the option's full key and the sentence.
    public func error(_ key: String, _ sentence: String) -> PolicyError { PolicyError("\(full(key)) \(sentence)") }

    private func full(_ key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }

    // MARK: Values

    /// The option's string. Throws if the value is empty or not a string.
    public func string(_ key: String, default fallback: String) throws(PolicyError) -> String {
        guard let tree = tree[key] else { return fallback }
        return try text(key, tree, as: "a string")
    }

    /// The option's word, one of an enumeration. Throws if the value is another word or not a string.
    public func word<Word>(
        _ key: String,
        default fallback: Word
    ) throws(PolicyError) -> Word where Word: CaseIterable & RawRepresentable, Word.RawValue == String {
        guard let tree = tree[key] else { return fallback }
        let text = try text(key, tree, as: "a string")
        guard let word = Word(rawValue: text) else { throw noWord(key, text, among: Word.allCases.map(\.rawValue)) }
        return word
    }

    /// The option's words, a list of words of an enumeration; a single word counts as a list with one element.
    public func words<Word>(
        _ key: String,
        default fallback: [Word] = []
    ) throws(PolicyError) -> [Word] where Word: CaseIterable & RawRepresentable, Word.RawValue == String {
        guard tree[key] != nil else { return fallback }
        var words: [Word] = []
        for text in try strings(key) {
            guard let word = Word(rawValue: text) else { throw noWord(key, text, among: Word.allCases.map(\.rawValue)) }
            words.append(word)
        }
        return words
    }

    /// The option's integer. Throws if the value is not an integer, or not in the range.
    public func integer(_ key: String, default fallback: Int, in range: ClosedRange<Int>) throws(PolicyError) -> Int {
        guard let tree = tree[key] else { return fallback }
        guard case .integer(let integer) = tree.value else { throw wrong(key, tree, "a whole number") }
        guard integer >= range.lowerBound else {
            throw error(key, "must be at least \(range.lowerBound): it is \(integer)")
        }
        guard integer <= range.upperBound else {
            throw error(key, "must be at most \(range.upperBound): it is \(integer)")
        }
        return Int(integer)
    }

    /// The option's number. Throws if the value is not a number, or not in the range.
    public func number(
        _ key: String,
        default fallback: Double,
        in range: ClosedRange<Double>
    ) throws(PolicyError) -> Double {
        guard let tree = tree[key] else { return fallback }
        let number: Double
        switch tree.value {
        case .integer(let integer): number = Double(integer)
        case .number(let value): number = value
        default: throw wrong(key, tree, "a number")
        }
        guard number >= range.lowerBound else {
            throw error(key, "must be at least \(range.lowerBound): it is \(number)")
        }
        guard number <= range.upperBound else {
            throw error(key, "must be at most \(range.upperBound): it is \(number)")
        }
        return number
    }

    /// The option's boolean. Throws if the value is not `true` or `false`.
    public func boolean(_ key: String, default fallback: Bool) throws(PolicyError) -> Bool {
        guard let tree = tree[key] else { return fallback }
        guard case .boolean(let boolean) = tree.value else { throw wrong(key, tree, "true or false") }
        return boolean
    }

    /// The option's duration, written as `"500ms"`, `"5s"` or `"1h30min"`. Throws if the value is not a duration, or
    /// not in the range.
    public func duration(
        _ key: String,
        default fallback: Duration,
        in range: ClosedRange<Duration> = .zero...Quantity.longest
    ) throws(PolicyError) -> Duration {
        guard let tree = tree[key] else { return fallback }
        let text = try text(key, tree, as: "a duration such as \"10min\"")
        guard let duration = Quantity.duration(text) else {
            throw error(key, "must be a duration such as \"500ms\", \"5s\" or \"1h30min\": it is \"\(text)\"")
        }
        guard duration >= range.lowerBound else {
            throw error(key, "must be at least \(range.lowerBound.inWords): it is \"\(text)\"")
        }
        guard duration <= range.upperBound else {
            throw error(key, "must be at most \(range.upperBound.inWords): it is \"\(text)\"")
        }
        return duration
    }

    /// The option's size in bytes, written as `"64MiB"`. Throws if the value is not a size, or not in the range.
    public func size(
        _ key: String,
        default fallback: UInt64,
        in range: ClosedRange<UInt64> = 0...UInt64(Int64.max)
    ) throws(PolicyError) -> UInt64 {
        guard let tree = tree[key] else { return fallback }
        let text = try text(key, tree, as: "a size such as \"64MiB\"")
        guard let size = Quantity.size(text) else {
            throw error(key, "must be a size such as \"512KiB\", \"64MiB\" or \"2GiB\": it is \"\(text)\"")
        }
        guard size >= range.lowerBound else {
            throw error(key, "must be at least \(Quantity.text(range.lowerBound)): it is \"\(text)\"")
        }
        guard size <= range.upperBound else {
            throw error(key, "must be at most \(Quantity.text(range.upperBound)): it is \"\(text)\"")
        }
        return size
    }

    /// The option's percentage as a fraction: `"2%"` is 0.02, `"0.5%"` is 0.005. Throws if the value is not a
    /// percentage, or not in the range.
    public func share(
        _ key: String,
        default fallback: Double,
        in range: ClosedRange<Double> = 0...1
    ) throws(PolicyError) -> Double {
        guard let tree = tree[key] else { return fallback }
        let text = try text(key, tree, as: "a share such as \"2%\"")
        guard let share = Quantity.share(text) else {
            throw error(key, "must be a share such as \"2%\" or \"0.5%\": it is \"\(text)\"")
        }
        guard range.contains(share) else {
            let bounds = "\(Quantity.percent(range.lowerBound)) to \(Quantity.percent(range.upperBound))"
            throw error(key, "must be from \(bounds): it is \"\(text)\"")
        }
        return share
    }

    // MARK: Lists and tables

    /// The option's list of strings; a single string counts as a list with one element.
    public func strings(_ key: String, default fallback: [String] = []) throws(PolicyError) -> [String] {
        guard let tree = tree[key] else { return fallback }
        if case .string = tree.value { return [try text(key, tree, as: "a list of strings")] }
        guard let elements = tree.elements else { throw wrong(key, tree, "a list of strings") }
        var texts: [String] = []
        for (index, element) in elements.enumerated() {
            texts.append(try text("\(key).\(index)", element, as: "a string"))
        }
        return texts
    }

    /// The option's list of app names, patterns with `*` and `?`, and `tag:NAME`.
    public func selectors(_ key: String, default fallback: [Selector] = []) throws(PolicyError) -> [Selector] {
        guard tree[key] != nil else { return fallback }
        var selectors: [Selector] = []
        for text in try strings(key) {
            guard let selector = Selector(text) else {
                throw error(key, "must name apps by name, glob or tag:NAME: it has \"\(text)\"")
            }
            selectors.append(selector)
        }
        return selectors
    }

    /// The option's list of tables, such as `rules = [{ apps = ["web"] }, …]`; empty if it is not configured.
    public func tables(_ key: String) throws(PolicyError) -> [Options] {
        guard let tree = tree[key] else { return [] }
        guard let elements = tree.elements else { throw wrong(key, tree, "a list of tables") }
        var tables: [Options] = []
        for (index, element) in elements.enumerated() {
            let path = "\(key).\(index)"
            guard element.value == nil, element.elements == nil else { throw wrong(path, element, "a table") }
            tables.append(Options(element, at: full(path)))
        }
        return tables
    }

    /// The option's table, such as `limits = { web = 3 }`; empty if it is not configured.
    public func table(_ key: String) throws(PolicyError) -> Options {
        guard let tree = tree[key] else { return Options(OptionTree(), at: full(key)) }
        guard tree.value == nil, tree.elements == nil else { throw wrong(key, tree, "a table") }
        return Options(tree, at: full(key))
    }

    // MARK: What is wrong

    private func text(_ key: String, _ tree: OptionTree, as what: String) throws(PolicyError) -> String {
        guard case .string(let text) = tree.value else { throw wrong(key, tree, what) }
        guard !text.isEmpty else { throw error(key, "must not be empty") }
        return text
    }

    private func wrong(_ key: String, _ tree: OptionTree, _ what: String) -> PolicyError {
        let found = tree.value.map { "\($0.kind), \($0.written)" } ?? tree.kind
        return error(key, "must be \(what): it is \(found)")
    }

    private func noWord(_ key: String, _ text: String, among words: [String]) -> PolicyError {
        let hint = Nearest.name(to: text, among: words).map { "; did you mean \"\($0)\"?" } ?? ""
        let all = words.map { "\"\($0)\"" }.joined(separator: ", ")
        return error(key, "must be one of \(all): it is \"\(text)\"\(hint)")
    }

    // MARK: Unknown keys

    /// Throws if an option is configured that the policy's description does not contain.
    func requireKnown(_ descriptions: [OptionDescription]) throws(PolicyError) {
        try requireKnown(
            tree,
            [],
            descriptions.map { $0.key.split(separator: ".").map(String.init) }
        )
    }

    /// - Parameter known: for each described path that begins with `path`, the part of it that follows.
    private func requireKnown(_ tree: OptionTree, _ path: [String], _ known: [[String]]) throws(PolicyError) {
        // An empty remainder means that a described path ends here, at a value or a list of values.
        let known = known.filter { !$0.isEmpty }
        if known.isEmpty, !path.isEmpty { return }
        for (key, child) in tree.children {
            let isElement = tree.elements != nil
            let further = known.filter { $0.first == key || $0.first == "*" }.map { Array($0.dropFirst()) }
            guard further.isEmpty else {
                try requireKnown(child, path + [key], further)
                continue
            }
            let names = known.compactMap(\.first).filter { $0 != "*" }
            let place = (path + [key]).joined(separator: ".")
            if isElement || names.isEmpty { throw PolicyError("\(place) is not an option of this policy") }
            let hint =
                Nearest.name(to: key, among: names).map { "did you mean \($0)?" }
                ?? "there are \(Set(names).sorted().joined(separator: ", "))"
            throw PolicyError("\(place) is not an option of this policy: \(hint)")
        }
    }
}
