// SPDX-License-Identifier: Apache-2.0

import Configuration
import WireText

/// A compose file: the commands of its services, without their containers.
enum Compose {
    static func read(_ text: String, _ tree: SourceTree, into result: inout ImportedConfiguration) throws(ImportError) {
        let root: DataNode
        do throws(ImportError) {
            root = try YAML.parse(text)
        } catch {
            throw ImportError("\(result.source): \(error.description)")
        }
        guard let members = root.members else {
            throw ImportError("\(result.source): a compose file is a table with services, but this is \(root.kind)")
        }
        let folder = SourceTree.folder(result.source)
        let variables = variables(folder, tree)
        // Files of the first version have the services without a table around them.
        let isOld = root["services"] == nil && members.contains { $0.value["image"] != nil || $0.value["build"] != nil }
        guard let services = isOld ? members : root["services"]?.members else {
            throw ImportError("\(result.source): it has no table named services")
        }
        if !isOld { others(members, &result) }
        let extender = ComposeExtension(tree: tree)
        for (name, node) in services {
            var program = ImportedProgram(name, line: node.line)
            let merged: DataNode
            do throws(ComposeExtension.Failure) {
                guard node.members != nil else {
                    throw ComposeExtension.Failure(message: "it is \(node.kind), not a table")
                }
                merged = try extender.merged(node, in: ComposeExtension.Services(folder: folder, nodes: services))
            } catch {
                program.cannot(error.message)
                try result.append(program)
                continue
            }
            var interpolation = ComposeInterpolation(variables: variables)
            let whole = merged.mapTexts { interpolation.expand($0) }
            ComposeService(node: whole, folder: folder, variables: variables, program: program).read(into: &program)
            if program.isTranslated {
                for name in interpolation.missing {
                    program.remark("the variable \(name) is not set here, and is taken as empty")
                }
                for name in interpolation.wanted {
                    program.remark("the variable \(name) must be set, and is not: it is taken as empty")
                }
            }
            try result.append(program)
        }
        completed(&result)
        let accountless = result.programs.filter { $0.isTranslated && $0["user"] == nil }.map(\.name)
        if !accountless.isEmpty {
            result.remark(
                "Services without user run as torpord's user, on the machine itself instead of in a container: as "
                    + "root, if torpord runs as root. Write user for \(LeftOutKeys.list(accountless))."
            )
        }
    }

    /// What stands beside the services.
    private static func others(_ members: OrderedTable<DataNode>, _ result: inout ImportedConfiguration) {
        let machine = "a program runs with the files and the network of the machine"
        let reasons = [
            "volumes": machine, "networks": machine, "secrets": "give the programs paths on the machine",
            "configs": "give the programs paths on the machine", "version": "it says nothing about a program",
            "name": "Torpor has no name for a set of apps", "models": "they belong to containers",
            "include": "import each file that it names by itself",
        ]
        var leftOut = LeftOutKeys()
        for (key, node) in members where key != "services" && !key.hasPrefix("x-") {
            leftOut.add(key, because: reasons[key] ?? "it is not a key of a compose file", at: SourceLine(node.line))
        }
        for (text, place) in leftOut.sentences() { result.remark(text + ".", at: place) }
    }

    /// What others wait for the end of is a oneshot.
    private static func completed(_ result: inout ImportedConfiguration) {
        let names = Set(result.programs.flatMap(\.completed).map(WireText.init))
        for index in result.programs.indices where names.contains(WireText(result.programs[index].name)) {
            result.programs[index]["type"] = .string("oneshot")
            result.programs[index]["launch_deadline"] = .string("none")
        }
    }

    /// The caller's, over those of the file `.env`.
    private static func variables(_ folder: String, _ tree: SourceTree) -> [String: String] {
        var variables: [String: String] = [:]
        let path = folder + "/.env"
        if let bytes = tree.read(path), let found = try? EnvironmentFile.parse(bytes, file: path) {
            for (name, value) in found { variables[name] = value }
        }
        return variables.merging(tree.variables) { _, own in own }
    }
}
