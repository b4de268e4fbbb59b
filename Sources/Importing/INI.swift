// SPDX-License-Identifier: Apache-2.0

import WireText

/// The INI files of supervisord, as Python's configparser reads them.
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
        /// Where the last entry of each key is.
        private var places: [WireText: Int] = [:]

        init(name: String, line: SourceLine) {
            self.name = name
            self.line = line
        }

        /// The value of a key; of several the last one.
        subscript(key: String) -> String? { places[WireText(key)].map { entries[$0].value } }

        func line(of key: String) -> SourceLine? { places[WireText(key)].map { entries[$0].line } }

        mutating func append(_ entry: Entry) {
            places[WireText(entry.key)] = entries.count
            entries.append(entry)
        }

        /// A line that goes on with the value before it; false where there is none.
        mutating func extend(with line: String) -> Bool {
            guard !entries.isEmpty else { return false }
            entries[entries.count - 1].value += "\n" + line
            return true
        }
    }

    private(set) var sections: [Section] = []
    private var places: [WireText: Int] = [:]
    /// Lines that are nothing of it.
    private(set) var strays: [SourceLine] = []

    subscript(name: String) -> Section? { places[WireText(name)].map { sections[$0] } }

    /// Takes a section in, unless there is one of its name.
    mutating func append(_ section: Section) -> Bool {
        guard places[WireText(section.name)] == nil else { return false }
        places[WireText(section.name)] = sections.count
        sections.append(section)
        return true
    }

    /// Reads a text.
    ///
    /// Lines that begin with `;` or `#` are comments, and so is what stands behind a blank and one of them. A line that
    /// is indented goes on with the value before it. A section that is there twice is one.
    ///
    /// - Parameter file: the name of the file, where it is not the source itself.
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
                _ = append(Section(name: name, line: place))
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
