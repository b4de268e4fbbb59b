// SPDX-License-Identifier: Apache-2.0

import WireText

/// A unit file of systemd (systemd.syntax(7)), with its drop-ins.
struct SystemdUnit {
    struct Entry {
        var section: String
        var key: String
        var value: String
        var line: SourceLine
    }

    private struct Key: Hashable {
        var section: WireText
        var key: WireText
    }

    /// The name without its suffix, such as `web`; for a template `web@`.
    var name: String
    var suffix: String
    let path: String
    private(set) var entries: [Entry] = []
    /// For each key, the indices of its entries.
    private var places: [Key: [Int]] = [:]
    /// Lines that are neither a section, an entry nor a comment.
    private(set) var strays: [SourceLine] = []
    /// Whether the unit is for a user's service manager, as its folder shows.
    let isUser: Bool

    /// Reads the unit at a path; nil if it cannot be read.
    init?(path: String, tree: SourceTree) {
        guard let text = tree.text(path) else { return nil }
        self.path = path
        var file = SourceTree.lastPart(path)
        // In some collections of unit files, a file's name has its origin as a prefix, `ORIGIN__NAME`: remove it.
        if let cut = file.range(of: "__", backwards: true) { file = String(file[cut...]) }
        let dot = file.lastIndex(of: ".") ?? file.endIndex
        name = String(file[..<dot])
        suffix = String(file[dot...])
        isUser =
            path.contains("/user/") || path.contains(".user.") || path.contains("/.config/containers/systemd/")
            || path.contains("/containers/systemd/users/")
        read(text, of: SourceTree.lastPart(path))
        let folder = path + ".d"
        for name in tree.names(folder) ?? [] where name.hasSuffix(".conf") {
            if let text = tree.text(folder + "/" + name) { read(text, of: SourceTree.lastPart(folder) + "/" + name) }
        }
    }

    private mutating func read(_ text: String, of file: String) {
        var section = ""
        // The parts of a line that continues over several lines, and the number of its first line.
        var parts: [String] = []
        var start = 0
        for (index, raw) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let line = raw.trimmed
            // A comment between the parts of a continued line does not end that line.
            if line.hasPrefix("#") || line.hasPrefix(";") { continue }
            if parts.isEmpty { start = index + 1 }
            guard line.hasSuffix("\\") else {
                parts.append(line)
                add(parts.joined(separator: " ").trimmed, SourceLine(start, of: file), &section)
                parts = []
                continue
            }
            parts.append(String(line.dropLast()))
        }
        if !parts.isEmpty { add(parts.joined(separator: " ").trimmed, SourceLine(start, of: file), &section) }
    }

    private mutating func add(_ line: String, _ place: SourceLine, _ section: inout String) {
        if line.isEmpty { return }
        if line.hasPrefix("["), line.hasSuffix("]") {
            section = String(line.dropFirst().dropLast())
            return
        }
        guard let equals = line.firstIndex(of: "=") else { return strays.append(place) }
        let key = line[..<equals].trimmed
        let value = line[line.index(after: equals)...].trimmed
        places[Key(section: WireText(section), key: WireText(key)), default: []].append(entries.count)
        entries.append(Entry(section: section, key: key, value: value, line: place))
    }

    private func entries(_ section: String, _ key: String) -> [Int] {
        places[Key(section: WireText(section), key: WireText(key))] ?? []
    }

    /// The last value of a key; nil if there is none, or if it is empty, which resets the key.
    func value(_ section: String, _ key: String) -> String? {
        guard let last = entries(section, key).last, !entries[last].value.isEmpty else { return nil }
        return entries[last].value
    }

    func line(_ section: String, _ key: String) -> SourceLine? { entries(section, key).last.map { entries[$0].line } }

    /// All values of a key. An empty value resets the key: it removes the values before it.
    func values(_ section: String, _ key: String) -> [String] {
        var values: [String] = []
        for index in entries(section, key) {
            let value = entries[index].value
            if value.isEmpty { values = [] } else { values.append(value) }
        }
        return values
    }

    /// The words, separated by blanks, in all values of a key.
    func lists(_ section: String, _ key: String) -> [String] {
        values(section, key).flatMap { $0.split(separator: " ").map(String.init) }
    }

    /// The instance's name; nil if the unit is not an instance. Empty for a template without DefaultInstance=.
    var instance: String? {
        guard let at = name.firstIndex(of: "@") else { return nil }
        let written = String(name[name.index(after: at)...])
        return written.isEmpty ? value("Install", "DefaultInstance") ?? "" : written
    }

    var prefix: String { name.firstIndex(of: "@").map { String(name[..<$0]) } ?? name }

    /// The name, without `.service`, of the service that belongs to the unit. For web.container, Quadlet makes
    /// `web.service`; for web.pod, `web-pod.service`.
    var serviceName: String {
        switch suffix {
        case ".container": value("Container", "ServiceName") ?? name
        case ".pod": value("Pod", "ServiceName") ?? name + "-pod"
        default: name
        }
    }

    /// The name of the app that the unit becomes.
    var title: String {
        suffix == ".pod" ? serviceName : instance?.isEmpty == false && !name.hasSuffix("@") ? name : prefix
    }
}

extension String {
    /// The index behind the last occurrence of a text; nil if there is none, or if nothing follows it.
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

/// Units that are imported together.
struct SystemdUnits {
    /// The services, including containers, which become services too.
    let services: [SystemdUnit]
    /// For each unit name without `.service`, the name of the service's program.
    private(set) var names: [WireText: String] = [:]
    /// Units for which no service has to wait, because podman creates what they describe when it is needed.
    let made: Set<WireText>
    private var triggers: [WireText: [SystemdUnit]] = [:]

    init(_ units: [SystemdUnit], made: Set<WireText> = []) {
        services = units.filter { [".service", ".container", ".pod"].contains($0.suffix) }
        self.made = made
        for unit in services { for name in [unit.title, unit.serviceName] { names[WireText(name)] = unit.title } }
        for unit in units where [".socket", ".timer", ".path"].contains(unit.suffix) {
            triggers[WireText(unit.target), default: []].append(unit)
        }
    }

    /// The sockets, timers and paths that start a service.
    func triggers(of service: SystemdUnit) -> [SystemdUnit] {
        triggers[WireText(service.serviceName + ".service")] ?? []
    }
}

extension SystemdUnit {
    /// The service that a socket, timer or path starts.
    var target: String {
        value("Timer", "Unit") ?? value("Path", "Unit") ?? value("Socket", "Service") ?? name + ".service"
    }

    /// Whether systemd creates a temporary user for the service (DynamicUser=). Torpor creates none, so the program
    /// would run as root.
    var isDynamic: Bool {
        guard !isUser, value("Service", "User") == nil, let text = value("Service", "DynamicUser") else { return false }
        return ["yes", "true", "1", "on"].contains(text.lowercased())
    }
}
