// SPDX-License-Identifier: Apache-2.0

import Configuration
import WireText

/// A compose file: its services as containers, or only their commands as programs of this machine.
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
        let project = tree.hasPrograms ? nil : ComposeProject(root, folder: folder, variables: variables)
        if !isOld { others(members, project, &result) }
        let extender = ComposeExtension(tree: tree)
        var files = [ComposeExtension.Services(folder: folder, nodes: services)]
        var seen: Set<WireText> = [WireText(result.source)]
        if project != nil { files += included(root, folder, tree, variables, &result, &seen) }
        for file in files {
            for (name, node) in file.nodes {
                var program = ImportedProgram(name, line: files.count == 1 ? node.line : nil)
                read(node, of: file, extender, variables, project, into: &program)
                try result.append(program)
            }
        }
        completed(&result)
        guard tree.hasPrograms else {
            for text in project?.networkRemarks ?? [] { result.remark(text) }
            result.remark(
                "Apps are suspended when you say so, or by a policy: write policies = [\"server\"] into [supervisor]."
            )
            return wakes(&result)
        }
        let accountless = result.programs.filter { $0.isTranslated && $0["user"] == nil }.map(\.name)
        if !accountless.isEmpty {
            result.remark(
                "Services without user run as torpord's user, on the machine itself instead of in a container: as "
                    + "root, if torpord runs as root. Write user for \(LeftOutKeys.list(accountless))."
            )
        }
    }

    private static func read(
        _ node: DataNode,
        of file: ComposeExtension.Services,
        _ extender: ComposeExtension,
        _ variables: [String: String],
        _ project: ComposeProject?,
        into program: inout ImportedProgram
    ) {
        let merged: DataNode
        do throws(ComposeExtension.Failure) {
            guard node.members != nil else {
                throw ComposeExtension.Failure(message: "it is \(node.kind), not a table")
            }
            merged = try extender.merged(node, in: file)
        } catch {
            return program.cannot(error.message)
        }
        var interpolation = ComposeInterpolation(variables: variables)
        let whole = merged.mapTexts { interpolation.expand($0) }
        var service = ComposeService(node: whole, folder: file.folder, variables: variables, program: program)
        service.project = project
        service.read(into: &program)
        guard program.isTranslated else { return }
        for name in interpolation.missing {
            program.remark("the variable \(name) is not set here, and is taken as empty")
        }
        for name in interpolation.wanted {
            program.remark("the variable \(name) must be set, and is not: it is taken as empty")
        }
    }

    /// The services of the files that `include` names, each relative to its own folder.
    private static func included(
        _ root: DataNode,
        _ folder: String,
        _ tree: SourceTree,
        _ variables: [String: String],
        _ result: inout ImportedConfiguration,
        _ seen: inout Set<WireText>
    ) -> [ComposeExtension.Services] {
        var files: [ComposeExtension.Services] = []
        for entry in root["include"]?.list ?? [] {
            let paths = entry.text.map { [$0] } ?? entry["path"].map { ($0.list ?? [$0]).compactMap(\.text) } ?? []
            for path in paths {
                var interpolation = ComposeInterpolation(variables: variables)
                let full = SourceTree.join(folder, interpolation.expand(path))
                // Each file once, whoever includes it.
                guard seen.insert(WireText(full)).inserted else { continue }
                guard seen.count <= 64, let other = tree.text(full).flatMap({ try? YAML.parse($0) }),
                    let services = other["services"]?.members
                else {
                    result.remark("\(path), which is included, cannot be read: import it by itself.", at: entry.place)
                    continue
                }
                let inner = SourceTree.folder(full)
                files.append(ComposeExtension.Services(folder: inner, nodes: services))
                files += included(other, inner, tree, variables, &result, &seen)
            }
        }
        return files
    }

    /// A request to a container that sleeps wakes it, from this machine as from another container.
    private static func wakes(_ result: inout ImportedConfiguration) {
        for index in result.programs.indices
        where result.programs[index].isTranslated && result.programs[index]["type"] == nil {
            result.programs[index]["wake_on_connect"] = .boolean(true)
        }
    }

    /// What stands beside the services.
    private static func others(
        _ members: OrderedTable<DataNode>,
        _ project: ComposeProject?,
        _ result: inout ImportedConfiguration
    ) {
        let machine = "a program runs with the files and the network of the machine"
        let reasons = [
            "volumes": machine, "networks": machine, "secrets": "give the programs paths on the machine",
            "configs": "give the programs paths on the machine", "version": "it says nothing about a program",
            "name": "Torpor has no name for a set of apps", "models": "they belong to containers",
            "include": "import each file that it names by itself",
        ]
        var leftOut = LeftOutKeys()
        let isUsed: Set = ["volumes", "networks", "secrets", "configs", "include", "name", "version"]
        for (key, node) in members where key != "services" && !key.hasPrefix("x-") {
            if project != nil, isUsed.contains(key) { continue }
            leftOut.add(key, because: reasons[key] ?? "it is not a key of a compose file", at: node.place)
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
