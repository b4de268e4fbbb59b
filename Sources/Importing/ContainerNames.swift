// SPDX-License-Identifier: Apache-2.0

import WireText

/// Fills in the values that depend on names of containers, which are known only when all apps have their names.
enum ContainerNames {
    static func assign(_ result: inout ImportedConfiguration) {
        var places: [WireText: Int] = [:]
        for (index, program) in result.programs.enumerated() where program.isTranslated {
            let name = WireText(program.name)
            if places[name] == nil { places[name] = index }
        }
        for index in result.programs.indices where result.programs[index].isTranslated {
            probe(&result.programs[index])
            guard let joined = result.programs[index].joined else { continue }
            join(joined, places[WireText(joined)].map { result.programs[$0] }, &result.programs[index])
        }
    }

    /// If an app joins the network of a container or mounts its volumes, makes it require the app that has this
    /// container.
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
        program["container"] = .table(table)
    }

    /// The name of a program's container in podman; nil if the program has several instances, or does not run in a
    /// container.
    private static func container(_ program: ImportedProgram) -> String? {
        guard program["instances"] == nil, case .table(let table) = program["container"] else { return nil }
        guard case .string(let name) = table["name"] else { return "torpor-" + program.appName }
        return name
    }
}
