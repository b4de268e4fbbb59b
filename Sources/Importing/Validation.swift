// SPDX-License-Identifier: Apache-2.0

public import Configuration

extension ImportedConfiguration {
    /// Has Torpor's own validation read it, and takes out what it refuses, with a remark; what is left is valid.
    ///
    /// - Parameters:
    ///   - path: where the file will be; relative paths begin there.
    ///   - system: the machine, whose users and groups must be there.
    ///   - environment: the variables of the supervisor.
    public mutating func validate(
        at path: String,
        system: ConfigurationSystem = .live,
        environment: [String: String] = [:]
    ) {
        // Each round takes out one key of a program at least, or the program.
        let rounds = programs.reduce(programs.count + 1) { $0 + $1.keys.count }
        for _ in 0..<rounds {
            let errors = errors(at: path, system, environment)
            guard !errors.isEmpty else { return }
            let places = Dictionary(
                programs.indices.map { (programs[$0].appName, $0) },
                uniquingKeysWith: { one, _ in one }
            )
            var isBetter = false
            for error in errors where refuse(error, places) { isBetter = true }
            if !isBetter { break }
        }
        // Nothing is refused any more that has a place; a file that is not valid is of no use to anybody.
        if let error = errors(at: path, system, environment).first {
            for index in programs.indices { programs[index].cannot(error.message) }
            remark(error.message)
        }
    }

    private func errors(
        at path: String,
        _ system: ConfigurationSystem,
        _ environment: [String: String]
    ) -> [Diagnostic] {
        guard translatedCount > 0 else { return [] }
        let text = Array(toml.utf8)
        var system = system
        system.read = { _ in .success(text) }
        switch ConfigurationLoader.load(path: path, environment: environment, system: system) {
        case .success(let configuration): return configuration.warnings.filter(\.isAboutMissingAccount)
        case .failure(let list): return list.diagnostics.filter { $0.severity == .error || $0.isAboutMissingAccount }
        }
    }

    /// Takes out what the sentence is about; false where that is nothing of it.
    ///
    /// - Parameter places: where each app is, by its name.
    private mutating func refuse(_ error: Diagnostic, _ places: [String: Int]) -> Bool {
        let parts = Self.parts(error.path)
        guard let table = parts.first else { return false }
        if table == "defaults", parts.count > 1 {
            let key = Self.key(parts[1])
            var isBetter = false
            for index in programs.indices where refuse(key, of: index, error.message) { isBetter = true }
            return isBetter
        }
        guard table == "apps", parts.count > 1, let index = places[parts[1]], programs[index].isTranslated
        else { return false }
        guard parts.count > 2, Self.key(parts[2]) != "exec" else {
            programs[index].cannot(error.message)
            return true
        }
        if Self.key(parts[2]) == "container" {
            // Without its container it would be a program of this machine, with the rights of torpord.
            guard parts.count > 3 else {
                programs[index].cannot(error.message)
                return true
            }
            return refuse(ofContainer: Self.key(parts[3]), of: index, error.message)
        }
        return refuse(Self.key(parts[2]), of: index, error.message)
    }

    /// Takes one key out of the table `container`, without which it would be no app.
    private mutating func refuse(ofContainer key: String, of index: Int, _ message: String) -> Bool {
        guard case .table(let table) = programs[index].keys["container"], let value = table[key] else { return false }
        let others = table.filter { !$0.key.utf8.elementsEqual(key.utf8) }
        programs[index].keys["container"] = .table(OrderedTable(others))
        programs[index].remark("container.\(key) = \(value.text) is left out: \(message)")
        if key == "image" { programs[index].cannot(message) }
        return true
    }

    private mutating func refuse(_ key: String, of index: Int, _ message: String) -> Bool {
        guard let value = programs[index].keys.removeValue(forKey: key) else { return false }
        programs[index].refused.append((key, value))
        programs[index].remark("\(key) = \(value.text) is left out: \(message)")
        if key == "user", message.hasPrefix("there is no user") { programs[index].withhold() }
        return true
    }

    /// The keys of a path such as `apps."my.app".exec[0]`.
    private static func parts(_ path: String) -> [String] {
        var parts: [String] = []
        var part = ""
        var isQuoted = false
        for scalar in path.unicodeScalars {
            if scalar == "\"" {
                isQuoted.toggle()
            } else if scalar == ".", !isQuoted {
                parts.append(part)
                part = ""
            } else {
                part.unicodeScalars.append(scalar)
            }
        }
        if !part.isEmpty { parts.append(part) }
        return parts
    }

    private static func key(_ part: String) -> String { String(part.prefix { $0 != "[" }) }
}
