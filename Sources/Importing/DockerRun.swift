// SPDX-License-Identifier: Apache-2.0

import WireText

/// Imports command lines of `docker run`, `podman run` and `podman pod create`.
enum DockerRun {
    /// - Parameters:
    ///   - text: one command line, or a script with several.
    ///   - folder: the folder from which relative paths start.
    static func read(
        _ text: String,
        in folder: String,
        _ tree: SourceTree,
        into result: inout ImportedConfiguration
    ) throws(ImportError) {
        let shell = ShellText(text, variables: tree.variables, folder: folder, file: tree.text)
        var environment = tree.variables
        var changes = shell.exports[...]
        for command in shell.commands {
            while changes.startIndex < command.exports, let (name, value) = changes.popFirst() {
                if case .text(let text) = value { environment[name] = text } else { environment[name] = nil }
            }
            let words = command.words.drop { ShellWords.assignment($0.text) != nil || before.contains($0.text) }
            guard let first = words.first else { continue }
            let place = SourceLine(first.line)
            let pod = podStart(words)
            guard let begin = pod ?? start(words) else {
                result.doubt(
                    "\(quoted(words.map(\.text).joined(separator: " "))) is no docker run, and is left out",
                    at: place
                )
                continue
            }
            var program = ImportedProgram("app", line: first.line)
            if let problem = command.problem {
                program.cannot(problem.sentence, at: SourceLine(problem.line))
            } else if command.folder == nil, words[begin...].contains(where: { isRelative($0.text) }) {
                program.cannot("its paths begin in a folder that is not known: write whole paths", at: place)
            } else if pod != nil {
                readPod(Array(words[begin...]), in: command.folder ?? folder, environment, place, into: &program)
            } else {
                read(Array(words[begin...]), in: command.folder ?? folder, environment, place, into: &program)
            }
            if program.isTranslated, pod == nil, SourceTree.lastPart(first.text) == "podman",
                let name = containerName(program)
            {
                program.remark(
                    "the container \(name) must be gone before: ‘\(removal(of: name))’ removes it, without its volumes",
                    at: place
                )
            }
            try result.append(program)
        }
        joinPods(&result)
        ContainerNames.link(&result)
        ContainerValues.mounts(tree, &result)
        ContainerValues.wake(&result)
    }

    /// Whether a word may contain a path relative to the working directory.
    private static func isRelative(_ word: String) -> Bool {
        let value = word.split(separator: "=").last.map(String.init) ?? word
        return word.contains("env-file") || value == "." || ["./", "../", ".:"].contains { value.hasPrefix($0) }
    }

    /// Words that may come before `docker` or `podman` in a command line.
    private static let before: Set = ["sudo", "exec", "time", "nohup"]

    /// The index of the first option; nil if the words are no `docker run` or `podman run` command.
    private static func start(_ words: ArraySlice<ShellText.Word>) -> Int? {
        guard let first = words.first, ["docker", "podman"].contains(SourceTree.lastPart(first.text)) else {
            return nil
        }
        var index = words.startIndex + 1
        if index < words.endIndex, words[index].text == "container" { index += 1 }
        guard index < words.endIndex, words[index].text == "run" || words[index].text == "create" else { return nil }
        return index + 1
    }

    private static func read(
        _ words: [ShellText.Word],
        in folder: String,
        _ environment: [String: String],
        _ place: SourceLine,
        into program: inout ImportedProgram
    ) {
        let options = PodmanOptions(words.map(\.text))
        if let name = options.given.last(where: { $0.name == "name" })?.value, !name.isEmpty {
            program.name = name
        } else if let image = options.rest.first, let name = self.name(of: image) {
            program.name = name
        }
        if let problem = options.problem {
            let word = words[problem.place]
            return program.cannot("\(problem.sentence) (column \(word.column))", at: SourceLine(word.line))
        }
        if let name = options.given.last(where: { $0.name == "name" })?.value, name.hasPrefix("-") {
            return program.cannot("its name \(quoted(name)) begins with “-”", at: place)
        }
        guard let image = options.rest.first, !image.isEmpty else {
            return program.cannot("it names no image", at: place)
        }
        var container = ContainerOptions(folder: folder, variables: environment)
        container.add(options, at: place, &program)
        container.finish(
            image: ContainerValues.qualified(image),
            command: Array(options.rest.dropFirst()),
            &program
        )
        program.pod = container.pod
        if program["restart"] == nil { program["restart"] = .string("never") }
        if program["grace"] == nil { program["grace"] = .string("10s") }
    }

    /// The last part of an image's name, such as `nginx` of `docker.io/library/nginx:1.27@sha256:…`.
    private static func name(of image: String) -> String? {
        SourceTree.lastPart(String(image.prefix { $0 != "@" })).split(separator: ":").first.map(String.init)
    }

    private static func containerName(_ program: ImportedProgram) -> String? {
        guard case .table(let table) = program["container"], case .string(let name) = table["name"] else { return nil }
        return name
    }

    private static func removal(of name: String) -> String {
        ["podman", "rm", "--force", "--", name].map(ShellWords.quote).joined(separator: " ")
    }
}
