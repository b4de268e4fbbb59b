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
        let rounds = programs.reduce(programs.count + 1) { $0 + 2 * $1.keys.count }
        let places = Dictionary(
            programs.indices.map { (programs[$0].appName, $0) },
            uniquingKeysWith: { one, _ in one }
        )
        for _ in 0..<rounds {
            let errors = errors(at: path, system, environment)
            guard !errors.isEmpty else { return true }
            var isBetter = false
            isRenamed = false
            // From the last one: what is taken out of a list must not move what the others are about.
            var done: Set<String> = []
            for error in errors.reversed() where done.insert(error.path).inserted {
                if refuse(error, places, isOneOfMany: errors.count >= Self.manyErrors) { isBetter = true }
            }
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
    /// - Parameters:
    ///   - places: where each app is, by its name.
    ///   - isOneOfMany: whether a list goes as a whole, since its elements would need too many rounds.
    private mutating func refuse(_ error: Diagnostic, _ places: [String: Int], isOneOfMany: Bool) -> Bool {
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
            let place = isOneOfMany ? nil : Self.place(parts[3])
            return refuse(ofContainer: Self.key(parts[3]), at: place, of: index, error.message)
        }
        return refuse(Self.key(parts[2]), of: index, error.message)
    }

    /// Keys of `container` that limit what the container may do: without a part of one it could do more.
    private static let limiting: Set = ["cap_drop", "image", "networks", "security", "user"]

    /// Takes one key out of the table `container`, or one element of its list.
    ///
    /// - Parameter place: which element; nil for the whole value.
    private mutating func refuse(
        ofContainer key: String,
        at place: Int?,
        of index: Int,
        _ message: String
    ) -> Bool {
        guard case .table(var table) = programs[index].keys["container"], let value = table[key] else { return false }
        if Self.limiting.contains(key) {
            programs[index].cannot("container.\(key): \(message)")
            return true
        }
        if let place, case .array(var elements) = value, elements.indices.contains(place), elements.count > 1 {
            let element = elements.remove(at: place)
            table[key] = .array(elements)
            programs[index].keys["container"] = .table(table)
            programs[index].remark("\(element.text) of container.\(key) is left out: \(message)")
            return true
        }
        let others = table.filter { !$0.key.utf8.elementsEqual(key.utf8) }
        programs[index].keys["container"] = .table(OrderedTable(others))
        programs[index].remark("container.\(key) = \(value.text) is left out: \(message)")
        if key == "name" { isRenamed = true }
        return true
    }

    private mutating func refuse(_ key: String, of index: Int, _ message: String) -> Bool {
        if key == "user", programs[index].keys["container"] != nil, programs[index].keys["user"] != nil {
            programs[index].cannot("user: \(message)")
            return true
        }
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

    /// The `2` of `volumes[2]`.
    private static func place(_ part: String) -> Int? {
        Int(part.drop { $0 != "[" }.dropFirst().prefix { $0 != "]" })
    }
}
