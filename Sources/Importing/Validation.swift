// SPDX-License-Identifier: Apache-2.0

public import Configuration

extension ImportedConfiguration {
    /// Validates the configuration as torpord does, and removes the keys that are refused, with a remark for each. The
    /// rest is valid.
    ///
    /// - Parameters:
    ///   - path: the path that the file will have, from which relative paths start.
    ///   - system: the machine, whose users and groups must exist. If it inspects files, there is a remark about each
    ///     program or script that is missing.
    ///   - environment: the environment variables of the supervisor.
    public mutating func validate(
        at path: String,
        system: ConfigurationSystem = .live,
        environment: [String: String] = [:]
    ) {
        // Validation stops after a limited number of errors. With many errors, each round would find only those of a
        // few apps, so validate in parts.
        if errors(at: path, system, environment).count > Self.manyErrors {
            for part in parts() { validate(part, at: path, system, environment) }
            ContainerNames.assign(&self)
        }
        guard !mend(at: path, system, environment) else {
            remarkOnRoot(system)
            return remarkOnMissing(at: path, system, environment)
        }
        // All errors with a known place were removed. If an error is left, the whole file is invalid and of no use.
        if let error = errors(at: path, system, environment).first {
            for index in programs.indices { programs[index].cannot(error.message) }
            remark(error.message)
        }
    }

    /// Adds a remark about programs that will run as root if torpord does, although the source does not say that. Skips
    /// compose files, which get a remark of their own, and containers, whose image determines the user.
    private mutating func remarkOnRoot(_ system: ConfigurationSystem) {
        guard system.effectiveUserID == 0, kind != .compose else { return }
        let names = programs.filter { program in
            program.isTranslated && program["user"] == nil && program["container"] == nil
                && !program.refused.contains { $0.key == "user" }
        }.map(\.appName)
        guard !names.isEmpty else { return }
        let shown = names.count > Self.mostNames ? names.prefix(Self.mostNames - 1) + ["others"] : names[...]
        remark(
            "Without a user, \(LeftOutKeys.list(Array(shown))) \(names.count == 1 ? "runs" : "run") as root under the "
                + "supervisor of the machine: write user = \"NAME\", or import it as the user whose supervisor runs it."
        )
    }

    /// Adds a remark about each program that this machine lacks, and each script of an interpreter.
    private mutating func remarkOnMissing(
        at path: String,
        _ system: ConfigurationSystem,
        _ environment: [String: String]
    ) {
        guard system.inspection != nil, translatedCount > 0,
            case .success(let configuration) = load(at: path, system, environment)
        else { return }
        let places = Dictionary(programs.indices.map { (programs[$0].appName, $0) }) { one, _ in one }
        for warning in configuration.warnings where warning.isAboutMissingProgram {
            let parts = Self.parts(warning.path)
            guard parts.count > 1, let index = places[parts[1]] else { continue }
            programs[index].remark(warning.message)
        }
    }

    /// The maximum number of names in a remark.
    private static let mostNames = 10

    /// If there are more errors than this, a configuration is validated in parts.
    private static let manyErrors = 100
    /// The approximate size of a part: the sum of the sizes of its programs, in bytes.
    private static let partSize = 1 << 14

    /// Removes refused keys until there is no error, or no error that can be removed. Returns true if there is no
    /// error.
    private mutating func mend(
        at path: String,
        _ system: ConfigurationSystem,
        _ environment: [String: String],
        isWhole: Bool = true
    ) -> Bool {
        // The maximum number of rounds. Each round removes at least one key of a program, or a program.
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
            // Begin with the last error: if an element of a list is removed, the indices of earlier elements stay the
            // same.
            var done: Set<String> = []
            for error in errors.reversed() where done.insert(error.path).inserted {
                if refuse(error, places, isOneOfMany: errors.count >= Self.manyErrors) { isBetter = true }
            }
            if !isBetter { return false }
            // The names of containers may change, so update the other programs and the probe, which refer to them.
            if isRenamed, isWhole { ContainerNames.assign(&self) }
        }
        return false
    }

    /// Divides the programs into parts of limited size.
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

    /// Removes refused keys of some programs, which are validated without the others.
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
        var system = system
        system.inspection = nil
        switch load(at: path, system, environment) {
        case .success(let configuration): return configuration.warnings.filter(\.isAboutMissingAccount)
        case .failure(let list): return list.diagnostics.filter { $0.severity == .error || $0.isAboutMissingAccount }
        }
    }

    /// Loads the configuration as it is now.
    private func load(
        at path: String,
        _ system: ConfigurationSystem,
        _ environment: [String: String]
    ) -> Result<TorporConfiguration, DiagnosticList> {
        let text = Array(toml.utf8)
        var system = system
        system.read = { _ in .success(text) }
        return ConfigurationLoader.load(path: path, environment: environment, system: system)
    }

    /// Removes the key or program that an error is about. Returns false if the error is about something else.
    ///
    /// - Parameters:
    ///   - places: the index of each app's program, by the app's name.
    ///   - isOneOfMany: whether to remove a list as a whole, because removing single elements would need too many
    ///     rounds.
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
            // The key `container` itself is refused. Do not translate the program: without a container, it would run on
            // this machine with torpord's rights.
            guard parts.count > 3 else {
                programs[index].cannot(error.message)
                return true
            }
            let place = isOneOfMany ? nil : Self.place(parts[3])
            return refuse(ofContainer: Self.key(parts[3]), at: place, of: index, error.message)
        }
        return refuse(Self.key(parts[2]), of: index, error.message)
    }

    /// Keys of `container` that limit the container's rights. If one is refused, the program is not translated, because
    /// the container would have more rights without a part of the value.
    private static let limiting: Set = ["cap_drop", "image", "networks", "security", "user"]

    /// Removes a key from the table `container`, or one element of the key's list.
    ///
    /// - Parameter place: the index of the element; nil to remove the whole key.
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

    /// The keys on a path such as `apps."my.app".exec[0]`.
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

    /// The index in a text such as `volumes[2]`; nil if there is none.
    private static func place(_ part: String) -> Int? {
        Int(part.drop { $0 != "[" }.dropFirst().prefix { $0 != "]" })
    }
}
