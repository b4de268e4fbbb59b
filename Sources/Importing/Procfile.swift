// SPDX-License-Identifier: Apache-2.0

import Configuration

/// Imports a Procfile: each line is `NAME: COMMAND`. foreman, overmind and honcho run the command in a shell.
enum Procfile {
    /// The port that foreman gives to the first process type. Each further type gets a port that is 100 higher.
    private static let firstPort = 5000

    /// The name and the command of a line; nil if the line is not `NAME: COMMAND`.
    static func entry(_ line: some StringProtocol) -> (name: String, command: String)? {
        guard let colon = line.firstIndex(of: ":") else { return nil }
        let name = String(line[..<colon])
        let isName =
            !name.isEmpty
            && name.unicodeScalars.allSatisfy { scalar in
                scalar.isASCII
                    && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || scalar == "-"
                        || scalar == "_")
            }
        let command = line[line.index(after: colon)...].trimmed
        return isName && !command.isEmpty ? (name, command) : nil
    }

    /// Files beside the Procfile that contain options for these supervisors. The options are not translated, but a
    /// remark names the files.
    private static let options = [
        ".foreman":
            "options of foreman: instances sets how many processes an app has, grace how long it may take to stop",
        ".overmind.env":
            "options of overmind: instances sets how many processes an app has, grace how long it may take to stop",
    ]

    static func read(
        _ text: String,
        _ tree: SourceTree,
        into result: inout ImportedConfiguration
    ) throws(ImportError) {
        let folder = SourceTree.folder(result.source)
        let hasVariables = tree.read(folder + "/.env") != nil
        let port = hasVariables ? Self.port(folder + "/.env", tree) : firstPort
        result.remark(
            "Programs like foreman end all processes when one ends; Torpor restarts each by itself when it fails."
        )
        if hasVariables, let difference = Dotenv.difference(folder + "/.env", tree) {
            result.remark("Each program \(difference).")
        }
        for (name, what) in options.sorted(by: { $0.key < $1.key }) where tree.read(folder + "/" + name) != nil {
            result.remark("\(name) is not read. It has \(what).")
        }
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let trimmed = line.trimmed
            if trimmed.isEmpty || trimmed.hasPrefix("#") { continue }
            guard let (name, command) = entry(line) else {
                let problem =
                    line.utf8.contains(UInt8(ascii: ":")) ? "is not NAME: COMMAND" : "has no colon after a name"
                result.doubt(
                    "line \(index + 1), \(quoted(trimmed)), \(problem), and is left out",
                    at: SourceLine(index + 1)
                )
                continue
            }
            let number = result.programs.count
            var program = ImportedProgram(name, line: index + 1)
            program["directory"] = .string(folder)
            if hasVariables { program["environment_file"] = .string(folder + "/.env") }
            let own = port + 100 * number
            program.setVariable("PORT", "\(own)")
            program["exec"] = .strings(Self.command(withPort(command, own), &program))
            SearchPath(path: tree.variables["PATH"] ?? "", tree: tree, directory: folder).keep(for: &program)
            if name == "release" {
                program["type"] = .string("oneshot")
                program["launch"] = .string("on-demand")
                program["launch_deadline"] = .string("none")
                program.remark("runs once before a release: start it by hand with ‘torpor start release’")
            }
            try result.append(program)
        }
    }

    /// The value of `PORT` in the file `.env`, which is foreman's first port; otherwise the default.
    private static func port(_ path: String, _ tree: SourceTree) -> Int {
        guard let bytes = tree.read(path), let variables = try? EnvironmentFile.parse(bytes, file: path),
            let text = variables.last(where: { $0.name == "PORT" })?.value, let port = Int(text),
            (1...65_535).contains(port)
        else { return firstPort }
        return port
    }

    /// The program and its arguments. If the command needs a shell, the program is the shell. Otherwise assignments
    /// before the program become variables of the app.
    static func command(_ line: String, shell: String = "/bin/sh", _ program: inout ImportedProgram) -> [String] {
        switch ShellWords.need(line) {
        case .script: return [shell, "-c", line]
        case .expansion:
            // Assignments may come before `exec`; they apply to the program that is executed.
            let rest = afterAssignments(line)
            return [shell, "-c", rest.isEmpty ? line : line[..<rest.startIndex] + "exec " + rest]
        case .none:
            var words = (ShellWords.split(line) ?? [])[...]
            while words.count > 1, let first = words.first, let (name, value) = ShellWords.assignment(first) {
                program.setVariable(name, value)
                words = words.dropFirst()
            }
            return Array(words)
        }
    }

    /// The line with the port in place of `$PORT`, if the line then needs no shell. A line that needs a shell in any
    /// case gets the port from its environment.
    private static func withPort(_ line: String, _ port: Int) -> String {
        // Leave the line unchanged in two cases: it has single quotes or backslashes, which may prevent the expansion;
        // or it sets PORT itself, so that `$PORT` is not the given port.
        guard line.contains("PORT"), !line.contains("'"), !line.contains("\\"), !line.contains("PORT="),
            !line.contains("unset"), let whole = withPorts(line, port), ShellWords.need(whole) == .none
        else { return line }
        return whole
    }

    private static func withPorts(_ line: String, _ port: Int) -> String? {
        var result = ""
        var rest = line[...]
        func drop(_ count: Int) { rest = rest[rest.utf8.index(rest.startIndex, offsetBy: count)...] }
        while let dollar = rest.utf8.firstIndex(of: UInt8(ascii: "$")) {
            result += rest[..<dollar]
            rest = rest[rest.utf8.index(after: dollar)...]
            if rest.utf8.starts(with: "{PORT}".utf8) {
                drop(6)
            } else if rest.utf8.starts(with: "{PORT:-".utf8) {
                guard let end = rest.utf8.firstIndex(of: UInt8(ascii: "}")) else { return nil }
                rest = rest[rest.utf8.index(after: end)...]
            } else if rest.utf8.starts(with: "PORT".utf8),
                rest.dropFirst(4).first.map({ !$0.isLetter && !$0.isNumber && $0 != "_" }) ?? true
            {
                drop(4)
            } else {
                return nil
            }
            result += "\(port)"
        }
        return result + rest
    }

    /// The rest of a line after the assignments (`NAME=value`) at its beginning; empty if a value consists of several
    /// words.
    private static func afterAssignments(_ line: String) -> Substring {
        let blank = UInt8(ascii: " ")
        var rest = line[...]
        while true {
            let word = rest[..<(rest.utf8.firstIndex(of: blank) ?? rest.endIndex)]
            // A quoted value may contain blanks, so it may continue after this word.
            guard let (_, value) = ShellWords.assignment(String(word)) else { return rest }
            let hasQuote = value.utf8.contains { "\"'`".utf8.contains($0) } || value.contains("$(")
            if hasQuote, ShellWords.split(String(word)) == nil { return "" }
            rest = rest[word.endIndex...].drop { $0 == " " }
        }
    }
}
