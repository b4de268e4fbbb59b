/// A unit file of systemd, as systemd.syntax(7) has it, with its drop-ins.
struct SystemdUnit {
    struct Entry {
        var section: String
        var key: String
        var value: String
        var line: Int
    }

    /// Without `.service`: `web`, `web@` of a template.
    var name: String
    var suffix: String
    var entries: [Entry] = []
    /// Lines that are nothing of it.
    var strays: [Int] = []
    /// Whether it is for a user's manager.
    var isUser = false

    /// The unit at a path; nil where it cannot be read.
    init?(path: String, tree: SourceTree) {
        guard let text = tree.text(path) else { return nil }
        var file = SourceTree.lastPart(path)
        // Files of a collection have their origin before their name.
        if let cut = file.range(of: "__", backwards: true) { file = String(file[cut...]) }
        let dot = file.lastIndex(of: ".") ?? file.endIndex
        name = String(file[..<dot])
        suffix = String(file[dot...])
        read(text)
        let folder = path + ".d"
        for name in tree.names(folder) ?? [] where name.hasSuffix(".conf") {
            if let text = tree.text(folder + "/" + name) { read(text) }
        }
        isUser =
            path.contains("/user/") || path.contains(".user.")
            || lists("Install", "WantedBy").contains("default.target") && value("Service", "User") == nil
    }

    private mutating func read(_ text: String) {
        var section = ""
        var pending: (text: String, line: Int)?
        for (index, raw) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let trimmed = raw.trimmed
            // A comment within a continued line is not its end.
            if trimmed.hasPrefix("#") || trimmed.hasPrefix(";") { continue }
            var line = (pending?.text ?? "") + (pending == nil ? trimmed : raw.trimmed)
            let start = pending?.line ?? index + 1
            if line.hasSuffix("\\") {
                line.removeLast()
                pending = (line + " ", start)
                continue
            }
            pending = nil
            add(line.trimmed, start, &section)
        }
        if let (text, line) = pending { add(text.trimmed, line, &section) }
    }

    private mutating func add(_ line: String, _ number: Int, _ section: inout String) {
        if line.isEmpty { return }
        if line.hasPrefix("["), line.hasSuffix("]") {
            section = String(line.dropFirst().dropLast())
            return
        }
        guard let equals = line.firstIndex(of: "=") else { return strays.append(number) }
        let key = line[..<equals].trimmed
        let value = line[line.index(after: equals)...].trimmed
        entries.append(Entry(section: section, key: key, value: value, line: number))
    }

    /// The last value of a key; nil where there is none, or an empty one took it back.
    func value(_ section: String, _ key: String) -> String? {
        guard let entry = entries.last(where: { $0.section == section && $0.key == key }), !entry.value.isEmpty else {
            return nil
        }
        return entry.value
    }

    func line(_ section: String, _ key: String) -> Int? {
        entries.last { $0.section == section && $0.key == key }?.line
    }

    /// All values of a key; an empty one takes those before it back.
    func values(_ section: String, _ key: String) -> [String] {
        var values: [String] = []
        for entry in entries where entry.section == section && entry.key == key {
            if entry.value.isEmpty { values = [] } else { values.append(entry.value) }
        }
        return values
    }

    /// The words of all values of a key.
    func lists(_ section: String, _ key: String) -> [String] {
        values(section, key).flatMap { $0.split(separator: " ").map(String.init) }
    }

    /// The instance's name; nil of what is none. A template without a default one has an empty one.
    var instance: String? {
        guard let at = name.firstIndex(of: "@") else { return nil }
        let written = String(name[name.index(after: at)...])
        return written.isEmpty ? value("Install", "DefaultInstance") ?? "" : written
    }

    var prefix: String { name.firstIndex(of: "@").map { String(name[..<$0]) } ?? name }

    /// What the app is called.
    var title: String { instance?.isEmpty == false && !name.hasSuffix("@") ? name : prefix }
}

extension String {
    /// Where the last one of a text ends.
    fileprivate func range(of text: String, backwards: Bool) -> String.Index? {
        var found: String.Index?
        var rest = self[...]
        while let index = rest.firstIndex(of: text.first ?? " ") {
            if rest[index...].hasPrefix(text) { found = rest.index(index, offsetBy: text.count) }
            rest = rest[rest.index(after: index)...]
        }
        return found == endIndex ? nil : found
    }
}
