// SPDX-License-Identifier: Apache-2.0

import Configuration
import WireText

/// Imports a compose file. Each service becomes an app that runs in a container or, on request, an app that runs the
/// service's command on this machine.
enum Compose {
    /// - Parameter others: further compose files. They are merged over the first file, in this order.
    static func read(
        _ text: String,
        others: [(path: String, text: String)] = [],
        _ tree: SourceTree,
        into result: inout ImportedConfiguration
    ) throws(ImportError) {
        var root = try parsed(text, result.source, of: nil)
        for (path, text) in others {
            root = ComposeMerge.files(root, try parsed(text, path, of: SourceTree.lastPart(path)))
        }
        root = DataNode(value: .map(root.members?.filtered { $0.value.tag != .reset } ?? []), line: root.line)
        let members = root.members ?? []
        let folder = SourceTree.folder(result.source)
        let variables = variables(folder, tree)
        // In the first version of the format, services are at the top level, not in a table `services`.
        let isOld = root["services"] == nil && members.contains { $0.value["image"] != nil || $0.value["build"] != nil }
        guard let services = isOld ? members : root["services"]?.members else {
            throw ImportError("\(result.source): it has no table named services")
        }
        var inclusion: ComposeInclusion?
        var project: ComposeProject?
        if !tree.hasPrograms {
            let included = ComposeInclusion(root, of: result.source, tree, variables)
            let whole = root.withoutReset.including(included.resources)
            project = ComposeProject(whole, folder: folder, variables: variables)
            inclusion = included
        }
        if !isOld { beside(members, project, &result) }
        for (text, place) in inclusion?.remarks ?? [] { result.remark(text, at: place) }
        let extender = ComposeExtension(tree: tree)
        let own = ComposeExtension.Services(folder: folder, nodes: services, variables: variables)
        let profiles = ComposeProfiles(tree.profiles, variables)
        var known: Set<WireText> = []
        for file in [own] + (inclusion?.files ?? []) {
            for (name, node) in file.nodes where node.tag != .reset {
                var program = ImportedProgram(name, line: node.file == nil ? node.line : nil)
                let whole = read(node, of: file, tree, extender, project, profiles, into: &program)
                known.formUnion((whole?["profiles"]?.list ?? []).compactMap(\.text).map(WireText.init))
                try result.append(program)
            }
        }
        for name in tree.profiles where name != "*" && !known.contains(WireText(name)) {
            result.remark("No service has the profile \(quoted(name)), which --profile names.")
        }
        completed(&result)
        guard tree.hasPrograms else {
            for text in project?.networkRemarks ?? [] { result.remark(text) }
            ContainerNames.alias(&result)
            ContainerValues.mounts(tree, &result)
            return ContainerValues.wake(&result)
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
        _ tree: SourceTree,
        _ extender: ComposeExtension,
        _ project: ComposeProject?,
        _ profiles: ComposeProfiles,
        into program: inout ImportedProgram
    ) -> DataNode? {
        let merged: DataNode
        do throws(ComposeExtension.Failure) {
            guard node.members != nil else {
                throw ComposeExtension.Failure(message: "it is \(node.kind), not a table")
            }
            merged = try extender.merged(node, in: file).withoutReset
        } catch {
            program.cannot(error.message)
            return nil
        }
        var interpolation = ComposeInterpolation(variables: file.variables)
        let whole = merged.mapTexts { interpolation.expand($0) }
        var service = ComposeService(node: whole, folder: file.folder, variables: file.variables, program: program)
        service.project = project
        service.profiles = profiles
        service.read(into: &program)
        guard program.isTranslated else { return whole }
        if project != nil { ComposeVariables.correct(&program, tree, file.variables) }
        for name in interpolation.missing {
            program.remark("the variable \(name) is not set here, and is taken as empty")
        }
        for name in interpolation.wanted {
            program.remark("the variable \(name) must be set, and is not: it is taken as empty")
        }
        return whole
    }

    private static func parsed(_ text: String, _ path: String, of file: String?) throws(ImportError) -> DataNode {
        let root: DataNode
        do throws(ImportError) {
            root = try YAML.parse(text, of: file)
        } catch {
            throw ImportError("\(path): \(error.description)")
        }
        guard root.members != nil else {
            throw ImportError("\(path): a compose file is a table with services, but this is \(root.kind)")
        }
        return root
    }

    private static let names = ["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"]
    private static let overrides = [
        "compose.override.yml", "compose.override.yaml", "docker-compose.override.yml", "docker-compose.override.yaml",
    ]

    /// The further files that COMPOSE_FILE names, in the environment or in `.env`, if the first file that it names is
    /// this one. compose reads these files instead of an override file. Nil if the variable is not set, or if this
    /// file's name is not one of those that compose looks for.
    static func listed(
        after path: String,
        _ tree: SourceTree,
        _ result: inout ImportedConfiguration
    )
        -> [(path: String, text: String)]?
    {
        guard names.contains(SourceTree.lastPart(path)) else { return nil }
        let folder = SourceTree.folder(path)
        let variables = variables(folder, tree)
        guard let list = variables["COMPOSE_FILE"], !list.isEmpty else { return nil }
        let separator = variables["COMPOSE_PATH_SEPARATOR"].flatMap(\.first) ?? ":"
        let paths = list.split(separator: separator).map { SourceTree.join(folder, String($0)) }
        guard paths.first == SourceTree.join(folder, SourceTree.lastPart(path)) else {
            result.remark(
                "COMPOSE_FILE names other files, which compose reads instead of this one: \(list). Name them."
            )
            return nil
        }
        var others: [(path: String, text: String)] = []
        for path in paths.dropFirst() {
            guard let text = tree.text(path) else {
                result.remark("\(path), which COMPOSE_FILE names, cannot be read, and is left out.")
                continue
            }
            others.append((path, text))
        }
        return others
    }

    /// The override file that compose merges over a file with a default name such as `compose.yaml`, unless the user
    /// names files.
    static func override(of path: String, _ tree: SourceTree) -> (path: String, text: String)? {
        guard names.contains(SourceTree.lastPart(path)) else { return nil }
        for name in overrides {
            let beside = SourceTree.join(SourceTree.folder(path), name)
            if let text = tree.text(beside) { return (beside, text) }
        }
        return nil
    }

    /// Adds remarks about the top-level keys beside `services`, which are not translated.
    private static func beside(
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

    /// Makes a service a oneshot app if other services wait until it has ended successfully.
    private static func completed(_ result: inout ImportedConfiguration) {
        let names = Set(result.programs.flatMap(\.completed).map(WireText.init))
        for index in result.programs.indices where names.contains(WireText(result.programs[index].name)) {
            result.programs[index]["type"] = .string("oneshot")
            result.programs[index]["launch_deadline"] = .string("none")
        }
    }

    /// The variables for interpolation: those of the file `.env`, which the caller's environment overrides.
    private static func variables(_ folder: String, _ tree: SourceTree) -> [String: String] {
        variables(of: [folder + "/.env"], tree).merging(tree.variables) { _, own in own }
    }

    /// The variables of files such as `.env`, in which a later file overrides an earlier one.
    static func variables(of paths: [String], _ tree: SourceTree) -> [String: String] {
        var variables: [String: String] = [:]
        for path in paths {
            guard let text = tree.text(path) else { continue }
            for (name, value) in ComposeVariables.parse(text, known: variables.merging(tree.variables) { $1 }) {
                variables[name] = value
            }
        }
        return variables
    }
}
