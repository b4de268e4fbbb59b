// SPDX-License-Identifier: Apache-2.0

import WireText

/// A unit file of systemd, as systemd.syntax(7) has it, with its drop-ins.
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

    /// Without `.service`: `web`, `web@` of a template.
    var name: String
    var suffix: String
    let path: String
    private(set) var entries: [Entry] = []
    /// Where the entries of each key are.
    private var places: [Key: [Int]] = [:]
    /// Lines that are nothing of it.
    private(set) var strays: [SourceLine] = []
    /// Whether it is for a user's manager, which its folder says.
    let isUser: Bool

    /// The unit at a path; nil where it cannot be read.
    init?(path: String, tree: SourceTree) {
        guard let text = tree.text(path) else { return nil }
        self.path = path
        var file = SourceTree.lastPart(path)
        // Files of a collection have their origin before their name.
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
        // The parts of a line that goes on, and where it begins.
        var parts: [String] = []
        var start = 0
        for (index, raw) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let line = raw.trimmed
            // A comment within a continued line is not its end.
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

    /// The last value of a key; nil where there is none, or an empty one took it back.
    func value(_ section: String, _ key: String) -> String? {
        guard let last = entries(section, key).last, !entries[last].value.isEmpty else { return nil }
        return entries[last].value
    }

    func line(_ section: String, _ key: String) -> SourceLine? { entries(section, key).last.map { entries[$0].line } }

    /// All values of a key; an empty one takes those before it back.
    func values(_ section: String, _ key: String) -> [String] {
        var values: [String] = []
        for index in entries(section, key) {
            let value = entries[index].value
            if value.isEmpty { values = [] } else { values.append(value) }
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

    /// The name of its service, without `.service`: Quadlet makes `web.service` of web.container, and web-pod.service of
    /// web.pod.
    var serviceName: String {
        switch suffix {
        case ".container": value("Container", "ServiceName") ?? name
        case ".pod": value("Pod", "ServiceName") ?? name + "-pod"
        default: name
        }
    }

    /// What the app is called.
    var title: String {
        suffix == ".pod" ? serviceName : instance?.isEmpty == false && !name.hasSuffix("@") ? name : prefix
    }
}

extension String {
    /// Where the last one of a text ends; nil where that is the end of this one.
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

/// Units that are read together.
struct SystemdUnits {
    /// Services, and containers, which become services.
    let services: [SystemdUnit]
    /// What they are called as programs, by their names without `.service`.
    private(set) var names: [WireText: String] = [:]
    /// Units that nothing has to wait for, since what they make is there when it is needed.
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

    /// Sockets, timers and paths of a service.
    func triggers(of service: SystemdUnit) -> [SystemdUnit] {
        triggers[WireText(service.serviceName + ".service")] ?? []
    }
}

extension SystemdUnit {
    /// The service that a socket, timer or path starts.
    var target: String {
        value("Timer", "Unit") ?? value("Path", "Unit") ?? value("Socket", "Service") ?? name + ".service"
    }

    /// Whether systemd makes a user for it, and it would be root's without.
    var isDynamic: Bool {
        guard !isUser, value("Service", "User") == nil, let text = value("Service", "DynamicUser") else { return false }
        return ["yes", "true", "1", "on"].contains(text.lowercased())
    }
}
