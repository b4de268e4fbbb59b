// SPDX-License-Identifier: Apache-2.0

import Configuration
import WireText

/// Sets the values that contain the names of containers. This is possible only once all apps have their names.
enum ContainerNames {
    static func assign(_ result: inout ImportedConfiguration) {
        var places: [WireText: Int] = [:]
        for (index, program) in result.programs.enumerated() where program.isTranslated {
            let name = WireText(program.name)
            if places[name] == nil { places[name] = index }
        }
        for index in result.programs.indices where result.programs[index].isTranslated {
            probe(&result.programs[index])
            forgetArguments(&result.programs[index])
            for (other, options) in result.programs[index].volumesFrom {
                let program = places[WireText(other)].map { result.programs[$0] }
                argument("volumes-from", of: other, program, &result.programs[index]) { $0 + options }
            }
            for (option, other) in result.programs[index].namespaces {
                let program = places[WireText(other)].map { result.programs[$0] }
                argument(option, of: other, program, &result.programs[index]) { "container:" + $0 }
            }
            guard let joined = result.programs[index].joined else { continue }
            join(joined, places[WireText(joined)].map { result.programs[$0] }, &result.programs[index])
        }
    }

    /// If an app joins the network of another app's container or mounts its volumes, makes the app require that other
    /// app.
    static func link(_ result: inout ImportedConfiguration) {
        var programs: [WireText: String] = [:]
        for program in result.programs where program.isTranslated {
            guard case .table(let table) = program["container"], case .string(let name) = table["name"] else {
                continue
            }
            programs[WireText(name)] = program.name
        }
        for index in result.programs.indices {
            guard case .table(let table) = result.programs[index]["container"],
                case .array(let networks) = table["networks"], case .string(let network)? = networks.first,
                network.hasPrefix("container:")
            else { continue }
            let name = String(network.dropFirst("container:".count))
            guard let program = programs[WireText(name)] else {
                result.programs[index].remark("the container \(quoted(name)) must run already: it is in its network")
                continue
            }
            result.programs[index].requires.append(program)
        }
    }

    private static func probe(_ program: inout ImportedProgram) {
        guard !program.probe.isEmpty, let name = container(program), case .table(let rest) = program["ready"] else {
            return
        }
        var ready: OrderedTable = [("command", TOMLValue.strings(["podman", "exec", name] + program.probe))]
        for (key, value) in rest where key != "command" { ready[key] = value }
        program["ready"] = .table(ready)
    }

    private static func join(_ joined: String, _ other: ImportedProgram?, _ program: inout ImportedProgram) {
        guard case .table(var table) = program["container"] else { return }
        guard let other else {
            return program.cannot("it is in the network of \(quoted(joined)), which is not translated")
        }
        guard other.appName != program.appName else { return program.cannot("it joins its own network") }
        guard let name = container(other) else {
            return program.cannot("it is in the network of \(quoted(joined)), which has several containers")
        }
        table["networks"] = .strings(["container:\(name)"])
        if program.isInPod {
            var arguments: [TOMLValue] = []
            if case .array(let all) = table["args"] { arguments = all }
            for option in ["--ipc=", "--uts="] where !arguments.contains(where: { $0.begins(with: option) }) {
                arguments.append(.string(option + "container:" + name))
                program.addedArguments += 1
            }
            table["args"] = .array(arguments)
        }
        program["container"] = .table(table)
    }

    /// Removes the arguments that contain other containers' names, because a container's name was refused and all names
    /// are assigned again.
    private static func forgetArguments(_ program: inout ImportedProgram) {
        guard program.addedArguments > 0, case .table(var table) = program["container"],
            case .array(let arguments) = table["args"]
        else { return }
        table["args"] = .array(arguments.dropLast(program.addedArguments))
        program["container"] = .table(table)
        program.addedArguments = 0
    }

    /// Adds an option of podman whose value contains the name of another container.
    private static func argument(
        _ option: String,
        of title: String,
        _ other: ImportedProgram?,
        _ program: inout ImportedProgram,
        value: (String) -> String
    ) {
        guard case .table(var table) = program["container"] else { return }
        guard let other, other.isTranslated, other.appName != program.appName, let name = container(other) else {
            let key = option.replacing("-", with: "_")
            return program.remark("\(key) is left out: \(quoted(title)) is no app with one container")
        }
        var arguments: [TOMLValue] = []
        if case .array(let all) = table["args"] { arguments = all }
        table["args"] = .array(arguments + [.string("--\(option)=\(value(name))")])
        program.addedArguments += 1
        program["container"] = .table(table)
    }

    /// Adds the names by which services know other services (`links` of compose) to the networks that both are in.
    static func alias(_ result: inout ImportedConfiguration) {
        var places: [WireText: Int] = [:]
        for (index, program) in result.programs.enumerated() where program.isTranslated {
            places[WireText(program.name)] = index
        }
        for index in result.programs.indices where result.programs[index].isTranslated {
            let own = networks(result.programs[index]).map(name)
            for (other, alias, place) in result.programs[index].links {
                guard let target = places[WireText(other)], add(alias, to: own, &result.programs[target]) else {
                    result.programs[index].remark(
                        "links: \(quoted(alias)) is no name of \(quoted(other)) here, since they share no network",
                        at: place
                    )
                    continue
                }
            }
        }
    }

    /// Adds an alias to those networks of the program that are in `shared`. Returns false if there is none.
    private static func add(_ alias: String, to shared: [String], _ program: inout ImportedProgram) -> Bool {
        guard case .table(var table) = program["container"] else { return false }
        var isThere = false
        let networks = networks(program).map { network in
            guard !ContainerSpecification.isMode(network),
                shared.contains(where: { $0.utf8.elementsEqual(name(network).utf8) })
            else { return network }
            isThere = true
            let option = "alias=" + alias
            if network.split(separator: ":").dropFirst().contains(where: {
                $0.split(separator: ",").contains(option[...])
            }) {
                return network
            }
            return network.contains(":") ? "\(network),\(option)" : "\(network):alias=\(program.name),\(option)"
        }
        if isThere { table["networks"] = .strings(networks) }
        program["container"] = .table(table)
        return isThere
    }

    private static func name(_ network: String) -> String { String(network.prefix { $0 != ":" }) }

    private static func networks(_ program: ImportedProgram) -> [String] {
        guard case .table(let table) = program["container"], case .array(let all) = table["networks"] else { return [] }
        return all.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }

    /// The name of a program's container in podman; nil if the program has several instances, or does not run in a
    /// container.
    private static func container(_ program: ImportedProgram) -> String? {
        guard program["instances"] == nil, case .table(let table) = program["container"] else { return nil }
        guard case .string(let name) = table["name"] else { return "torpor-" + program.appName }
        return name
    }
}

extension TOMLValue {
    /// Whether the value is a text that begins with these characters.
    fileprivate func begins(with start: String) -> Bool {
        if case .string(let text) = self { text.utf8.starts(with: start.utf8) } else { false }
    }
}
