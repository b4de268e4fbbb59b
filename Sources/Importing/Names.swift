// SPDX-License-Identifier: Apache-2.0

import WireText

/// Gives each app a valid and unique name, and resolves the names that `requires` and `after` refer to.
enum Names {
    /// The maximum length of an app's name.
    private static let longest = 63

    static func assign(_ result: inout ImportedConfiguration) {
        var taken: Set<String> = []
        // For each name, the number to try next if the name is taken. So a thousand programs with the same name need
        // only a thousand tries.
        var numbers: [String: Int] = [:]
        // Programs that do not become apps get their names last, so that they do not take the name of an app.
        let order =
            result.programs.indices.filter { result.programs[$0].isTranslated }
            + result.programs.indices.filter { !result.programs[$0].isTranslated }
        for index in order {
            let name = result.programs[index].name
            let valid = valid(name)
            var unique = valid
            let stem = String(valid.prefix(58))
            while !taken.insert(unique).inserted {
                let number = numbers[stem] ?? 2
                unique = "\(stem)-\(number)"
                numbers[stem] = number + 1
            }
            result.programs[index].appName = unique
            if unique != name, result.programs[index].isTranslated {
                let why =
                    valid == name
                    ? ", as another one is"
                    : name.unicodeScalars.count > longest ? ": a name has at most \(longest) characters" : ""
                result.programs[index].remark("was called \(quoted(name))\(why)")
            }
        }
        lookUp(&result)
    }

    /// The name reduced to letters, digits, `-`, `_` and `.`, without `.` or `-` at its beginning, and with at most
    /// ``longest`` characters.
    static func valid(_ name: String) -> String {
        var result = ""
        for scalar in name.unicodeScalars {
            let isGood =
                scalar.isASCII
                && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
                    || "-_.".unicodeScalars.contains(scalar))
            if isGood {
                result.unicodeScalars.append(scalar)
            } else if !result.hasSuffix("-") {
                result += "-"
            }
        }
        let inner = result.drop { $0 == "." || $0 == "-" }
        let end = inner.lastIndex { $0 != "-" }.map(inner.index(after:)) ?? inner.startIndex
        return end == inner.startIndex ? "app" : String(inner[..<end].prefix(longest))
    }

    /// Replaces the names in `requires` and `after`, which are names of programs in the source, by names of apps.
    private static func lookUp(_ result: inout ImportedConfiguration) {
        // If several programs have the same name, it means the first of them, as in ``ContainerNames``. An app that
        // waited for all of them would let a script of copied lines grow to a configuration of the square of its size.
        var apps: [WireText: String] = [:]
        for program in result.programs where program.isTranslated {
            let name = WireText(program.name)
            if apps[name] == nil { apps[name] = program.appName }
        }
        for index in result.programs.indices where result.programs[index].isTranslated {
            let own = result.programs[index].appName
            let requires = result.programs[index].requires
            for name in requires where apps[WireText(name)] == nil {
                result.programs[index].remark("needs \(quoted(name)), which is not imported: it must run already")
            }
            func names(_ key: String, _ written: [WireText]) {
                var seen: Set<String> = [own]
                let found = written.compactMap { apps[$0] }.filter { seen.insert($0).inserted }
                if !found.isEmpty { result.programs[index].keys[key] = .strings(found) }
            }
            let required = Set(requires.map(WireText.init))
            names("requires", requires.map(WireText.init))
            names("after", result.programs[index].after.map(WireText.init).filter { !required.contains($0) })
        }
    }
}
