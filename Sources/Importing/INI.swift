// SPDX-License-Identifier: Apache-2.0

import WireText

/// Parses the INI files of supervisord by the rules of Python's configparser.
struct INI {
    struct Entry {
        var key: String
        var value: String
        var line: SourceLine
    }

    struct Section {
        let name: String
        let line: SourceLine
        private(set) var entries: [Entry] = []
        /// For each key, the index of its last entry, which is the one that counts.
        private var places: [WireText: Int] = [:]

        init(name: String, line: SourceLine) {
            self.name = name
            self.line = line
        }

        /// The value of a key; if there are several, the last one.
        subscript(key: String) -> String? { places[WireText(key)].map { entries[$0].value } }

        func line(of key: String) -> SourceLine? { places[WireText(key)].map { entries[$0].line } }

        /// The entries that do not count, because a later entry sets the same key to another value.
        var overridden: [Entry] {
            entries.filter { entry in self[entry.key].map { WireText($0) != WireText(entry.value) } ?? false }
        }

        mutating func append(_ entry: Entry) {
            places[WireText(entry.key)] = entries.count
            entries.append(entry)
        }

        /// Appends a continuation line to the last value. Returns false if there is no value before it.
        mutating func extend(with line: String) -> Bool {
            guard !entries.isEmpty else { return false }
            entries[entries.count - 1].value += "\n" + line
            return true
        }
    }

    private(set) var sections: [Section] = []
    private var places: [WireText: Int] = [:]
    /// Lines that are neither the head of a section, an entry nor a comment.
    private(set) var strays: [SourceLine] = []

    subscript(name: String) -> Section? { places[WireText(name)].map { sections[$0] } }

    /// Adds a section; if one with this name exists already, the entries are added to that one and count before its own.
    /// Returns whether the section is new.
    @discardableResult
    mutating func add(_ section: Section) -> Bool {
        if let place = places[WireText(section.name)] {
            for entry in section.entries { sections[place].append(entry) }
            return false
        }
        places[WireText(section.name)] = sections.count
        sections.append(section)
        return true
    }

    /// Parses a text.
    ///
    /// A line that begins with `;` or `#` is a comment. Within a line, a comment begins at a blank followed by `;` or
    /// `#`. An indented line continues the value before it. Sections with the same name are merged.
    ///
    /// - Parameter file: the file's name, if it is not the imported file itself.
    init(_ text: String, file: String? = nil) {
        var section: Int?
        var isOpen = false
        for (index, raw) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let line = Self.withoutComment(raw)
            let trimmed = line.trimmed
            if trimmed.isEmpty { continue }
            let place = SourceLine(index + 1, of: file)
            let isIndented = line.first == " " || line.first == "\t"
            if isIndented, isOpen, let section, sections[section].extend(with: trimmed) { continue }
            if trimmed.hasPrefix("["), let end = trimmed.lastIndex(of: "]") {
                let name = trimmed[trimmed.index(after: trimmed.startIndex)..<end].trimmed
                add(Section(name: name, line: place))
                section = places[WireText(name)]
                isOpen = false
                continue
            }
            guard let section, let end = trimmed.firstIndex(where: { $0 == "=" || $0 == ":" }) else {
                strays.append(place)
                continue
            }
            let key = trimmed[..<end].trimmed.lowercased()
            let value = trimmed[trimmed.index(after: end)...].trimmed
            sections[section].append(Entry(key: key, value: value, line: place))
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
