/// The INI files of supervisord, as Python's configparser reads them.
struct INI {
    struct Entry {
        var key: String
        var value: String
        var line: Int
    }

    struct Section {
        var name: String
        var line: Int
        var entries: [Entry] = []

        /// The value of a key; of several the last one.
        subscript(key: String) -> String? { entries.last { $0.key == key }?.value }

        func line(of key: String) -> Int? { entries.last { $0.key == key }?.line }
    }

    var sections: [Section] = []
    /// Lines that are nothing of it.
    var strays: [Int] = []

    /// Reads a text.
    ///
    /// Lines that begin with `;` or `#` are comments, and so is what stands behind a blank and one of them. A line that
    /// is indented goes on with the value before it. A section that is there twice is one.
    init(_ text: String) {
        var section: Int?
        var isOpen = false
        for (index, raw) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let line = Self.withoutComment(raw)
            let trimmed = line.trimmed
            if trimmed.isEmpty { continue }
            let isIndented = line.first == " " || line.first == "\t"
            if isIndented, isOpen, let section, !sections[section].entries.isEmpty {
                let last = sections[section].entries.count - 1
                sections[section].entries[last].value += "\n" + trimmed
                continue
            }
            if trimmed.hasPrefix("["), let end = trimmed.lastIndex(of: "]") {
                let name = trimmed[trimmed.index(after: trimmed.startIndex)..<end].trimmed
                if let known = sections.firstIndex(where: { $0.name == name }) {
                    section = known
                } else {
                    sections.append(Section(name: name, line: index + 1))
                    section = sections.count - 1
                }
                isOpen = false
                continue
            }
            guard let section, let end = trimmed.firstIndex(where: { $0 == "=" || $0 == ":" }) else {
                strays.append(index + 1)
                continue
            }
            let key = trimmed[..<end].trimmed.lowercased()
            let value = trimmed[trimmed.index(after: end)...].trimmed
            sections[section].entries.append(Entry(key: key, value: value, line: index + 1))
            isOpen = true
        }
    }

    private static func withoutComment(_ line: Substring) -> Substring {
        if let first = line.trimmed.first, first == "#" || first == ";" { return "" }
        var previous: Unicode.Scalar = "x"
        for index in line.unicodeScalars.indices {
            let scalar = line.unicodeScalars[index]
            if scalar == ";" || scalar == "#", previous == " " || previous == "\t" { return line[..<index] }
            previous = scalar
        }
        return line
    }
}
