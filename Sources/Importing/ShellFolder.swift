// SPDX-License-Identifier: Apache-2.0

import WireText

/// Built-in commands of the shell that change the working directory or read variables from a file.
extension ShellText {
    /// Handles `cd`, `source` and `set -a`. Returns false for other commands, and if a file cannot be read.
    mutating func isBuiltIn(_ name: String, _ words: [Word]) -> Bool {
        switch name {
        case "cd", "pushd":
            change(to: words.first { !["--", "-L", "-P"].contains($0.text) })
            return true
        case "source", ".": return words.first.map { source($0) } ?? false
        case "set":
            let all = words.map(\.text)
            guard all == ["-a"] || all == ["+a"] || all == ["-o", "allexport"] || all == ["+o", "allexport"] else {
                return false
            }
            exportsAll = all[0].hasPrefix("-")
            return true
        default: return false
        }
    }

    private mutating func change(to word: Word?) {
        guard isCertain else { return store(.unknown("line \(line) changes the folder under a condition"), in: "PWD") }
        if let word, word.problem != nil {
            // Scripts often begin with `cd "$(dirname "$0")"`, which changes to the folder of the script.
            let text = String(wire: bytes[lineStart..<min(index, bytes.count)])
            guard !text.contains("dirname") else { return store(.text(folder), in: "PWD") }
            return store(.unknown("line \(word.line) changes to a folder that is not known"), in: "PWD")
        }
        guard let path = word?.text ?? known("HOME"), path != "-", path.hasPrefix("/") || known("PWD") != nil else {
            return store(.unknown("line \(line) changes to a folder that is not known"), in: "PWD")
        }
        store(.text(SourceTree.join(known("PWD") ?? "/", path)), in: "PWD")
    }

    private func known(_ name: String) -> String? {
        guard case .text(let text)? = variables[name] else { return nil }
        return text
    }

    /// The maximum nesting of files that source other files.
    private static let depthLimit = 8

    /// Sets the variables of a file that the script sources. Returns false if the file cannot be read.
    private mutating func source(_ word: Word) -> Bool {
        guard word.problem == nil, sourceDepth < Self.depthLimit,
            word.text.hasPrefix("/") || known("PWD") != nil,
            let text = file(SourceTree.join(known("PWD") ?? "/", word.text))
        else { return false }
        var others: [String: String] = [:]
        for (name, value) in variables { if case .text(let text) = value { others[name] = text } }
        let inner = ShellText(
            text,
            variables: others,
            folder: known("PWD") ?? folder,
            file: file,
            sourceDepth: sourceDepth + 1,
            exportsAll: exportsAll,
            exported: exported
        )
        expanded += inner.expanded
        for (name, value) in inner.variables where name != "PWD" {
            switch value {
            case .text(let text): if known(name) != text { set(name, text, line: word.line) }
            case .unknown: store(value, in: name)
            }
        }
        for (name, _) in inner.exports { export(name) }
        return true
    }
}
