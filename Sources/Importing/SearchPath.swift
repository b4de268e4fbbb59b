// SPDX-License-Identifier: Apache-2.0

import Configuration
import WireText

/// Handles programs that a source names without a folder. The old supervisor found them on the PATH of the shell that
/// started it. If torpord runs as a service, its PATH lacks the folders of nvm and of virtual environments, and
/// ~/.local/bin.
struct SearchPath {
    /// The PATH of the old supervisor.
    let path: String
    let tree: SourceTree
    /// The working directory of the program. Relative paths start here.
    let directory: String

    /// How much of a script is searched for the names of programs: at most this many bytes and words.
    private static let scriptLimit = 64 << 10
    private static let mostWords = 1000
    private static let shells: Set = ["sh", "bash", "dash", "zsh"]
    /// Programs that look up node on the PATH and run it.
    private static let forNode: Set = ["npm", "npx", "yarn", "yarnpkg", "pnpm"]

    /// Gives the app a PATH of its own if torpord's PATH lacks a program that the command names, or leads to a
    /// different program of that name.
    func keep(for program: inout ImportedProgram) {
        guard !path.isEmpty, program["container"] == nil, case .array(let values)? = program["exec"] else { return }
        if case .table(let variables)? = program["environment"], variables["PATH"] != nil { return }
        let words = values.compactMap { value -> String? in
            guard case .string(let word) = value else { return nil }
            return word
        }
        var folders: [String] = []
        var told: (name: String, here: String, there: String?)?
        for name in names(words) {
            guard let here = find(name, in: path) else { continue }
            let there = find(name, in: ConfigurationSystem.servicePath)
            guard here.real != there?.real, !folders.contains(here.folder) else { continue }
            folders.append(here.folder)
            told = told ?? (name, here.folder + "/" + name, there.map { $0.folder + "/" + name })
        }
        guard let (name, here, there) = told else { return }
        // The folders keep the order of the old PATH. The system's folders come last.
        let order = path.split(separator: ":").map(String.init)
        folders.sort { (order.firstIndex(of: $0) ?? 0) < (order.firstIndex(of: $1) ?? 0) }
        program.setVariable("PATH", (folders + [ConfigurationSystem.servicePath]).joined(separator: ":"))
        program.remark(
            "\(name) is \(here) on the PATH of the shell, but torpord as a service \(there.map { "finds \($0)" } ?? "does not find it"): "
                + "environment.PATH has \(LeftOutKeys.list(folders)) first"
        )
    }

    /// The names of the programs that a command runs, as far as its words and scripts show them.
    private func names(_ words: [String]) -> [String] {
        guard let first = words.first else { return [] }
        let name = SourceTree.lastPart(first)
        var names = first.contains("/") ? [] : [first]
        if Self.forNode.contains(name) { names.append("node") }
        if Self.shells.contains(name) {
            if let place = words.firstIndex(of: "-c"), place + 1 < words.count {
                names += Self.words(of: words[place + 1])
            } else if let script = words.dropFirst().first(where: { !$0.hasPrefix("-") }) {
                names += Self.words(of: text(script))
            }
        } else if let word = interpreter(of: first.contains("/") ? first : find(first, in: path)?.real ?? first) {
            names.append(word)
        }
        return names
    }

    /// The name in the first line `#!/usr/bin/env NAME` of a script. env(1) looks it up on the PATH.
    private func interpreter(of script: String) -> String? {
        guard script.contains("/"), let bytes = tree.read(SourceTree.join(directory, script)),
            bytes.starts(with: "#!".utf8)
        else { return nil }
        let line = String(wire: Array(bytes.prefix(256).prefix { $0 != 0x0a }.dropFirst(2)))
        let words = line.split { $0 == " " || $0 == "\t" || $0 == "\r" }
        guard let env = words.first, SourceTree.lastPart(String(env)) == "env" else { return nil }
        return words.dropFirst().first { !$0.hasPrefix("-") && !$0.contains("=") }.map(String.init)
    }

    private func text(_ script: String) -> String {
        String(wire: Array((tree.read(SourceTree.join(directory, script)) ?? []).prefix(Self.scriptLimit)))
    }

    /// The distinct words of a script that may be names of programs.
    private static func words(of text: String) -> [String] {
        var seen: Set<String> = []
        var names: [String] = []
        for part in text.unicodeScalars.split(whereSeparator: { !isOfName($0) }) {
            let word = String(part)
            guard word.utf8.count < 64, !ShellWords.builtins.contains(word), seen.insert(word).inserted else {
                continue
            }
            names.append(word)
            if forNode.contains(word), seen.insert("node").inserted { names.append("node") }
            if names.count >= mostWords { break }
        }
        return names
    }

    private static func isOfName(_ scalar: Unicode.Scalar) -> Bool {
        scalar.isASCII
            && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
                || "-_.+".unicodeScalars.contains(scalar))
    }

    private func find(_ name: String, in path: String) -> (folder: String, real: String)? {
        guard !name.contains("/"), !name.isEmpty, name != ".", name != ".." else { return nil }
        for folder in path.split(separator: ":") where folder.hasPrefix("/") {
            if let real = tree.program(folder + "/" + name) { return (String(folder), real) }
        }
        return nil
    }
}
