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
        // The validation stops at so many errors as nobody reads: each round would find a few apps' only.
        if errors(at: path, system, environment).count > Self.manyErrors {
            for part in parts() { validate(part, at: path, system, environment) }
            ContainerNames.assign(&self)
        }
        guard !mend(at: path, system, environment) else { return }
        // Nothing is refused any more that has a place; a file that is not valid is of no use to anybody.
        if let error = errors(at: path, system, environment).first {
            for index in programs.indices { programs[index].cannot(error.message) }
            remark(error.message)
        }
    }

    /// Errors of a file that is validated in parts.
    private static let manyErrors = 100
    /// Bytes of the programs of a part, about.
    private static let partSize = 1 << 14

    /// Takes out what is refused, until nothing is, or nothing that has a place; true in the first case.
    private mutating func mend(
        at path: String,
        _ system: ConfigurationSystem,
        _ environment: [String: String],
        isWhole: Bool = true
    ) -> Bool {
        // Each round takes out one key of a program at least, or the program.
        let rounds = programs.reduce(programs.count + 1) { $0 + $1.keys.count }
        let places = Dictionary(
            programs.indices.map { (programs[$0].appName, $0) },
            uniquingKeysWith: { one, _ in one }
        )
        for _ in 0..<rounds {
            let errors = errors(at: path, system, environment)
            guard !errors.isEmpty else { return true }
            var isBetter = false
            isRenamed = false
            for error in errors where refuse(error, places) { isBetter = true }
            if !isBetter { return false }
            // Other programs and its probe go by a container's name.
            if isRenamed, isWhole { ContainerNames.assign(&self) }
        }
        return false
    }

    /// Programs in a row that are not large together.
    private func parts() -> [Range<Int>] {
        var parts: [Range<Int>] = []
        var begin = 0
        var size = 0
        for (index, program) in programs.enumerated() {
            if index > begin, size + program.size > Self.partSize {
                parts.append(begin..<index)
                (begin, size) = (index, 0)
            }
            size += program.size
        }
        return parts + [begin..<programs.count]
    }

    /// Takes out what is refused of some programs, whatever the others are.
    private mutating func validate(
        _ part: Range<Int>,
        at path: String,
        _ system: ConfigurationSystem,
        _ environment: [String: String]
    ) {
        var alone = ImportedConfiguration(kind: kind, source: source)
        alone.programs = Array(programs[part])
        let others = ["requires", "after"]
        for index in alone.programs.indices { for key in others { alone.programs[index].keys[key] = nil } }
        _ = alone.mend(at: path, system, environment, isWhole: false)
        for (index, place) in part.enumerated() {
            let before = programs[place]
            programs[place] = alone.programs[index]
            for key in others { programs[place].keys[key] = before.keys[key] }
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
        if key == "name" { isRenamed = true }
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
