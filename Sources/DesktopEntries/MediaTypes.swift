// SPDX-License-Identifier: Apache-2.0

import Linux
import WireText

/// Looks up media types by file name in the system's MIME databases.
package struct MediaTypes {
    /// The folders of the databases, the user's first.
    private let folders: [String]
    /// The file mime.types(5), which Debian's package media-types installs. Its lines are `TYPE EXTENSION…`.
    private static let types = "/etc/mime.types"

    /// Uses the databases that this process's environment names.
    package init() {
        let own = ThisProcess.environment("HOME").map { $0 + "/.local/share" }
        let home = ThisProcess.environment("XDG_DATA_HOME") ?? own
        let shared = ThisProcess.environment("XDG_DATA_DIRS") ?? "/usr/local/share:/usr/share"
        folders = ([home].compactMap { $0 } + shared.split(separator: ":").map(String.init)).map { $0 + "/mime" }
    }

    /// The media type for that file name; nil if unknown.
    package func type(of path: String) -> String? {
        let name = path.split(separator: "/").last.map { String($0).lowercased() } ?? ""
        for folder in folders {
            if let type = Self.inGlobs(folder + "/globs2", name) { return type }
        }
        return Self.inTypes(name)
    }

    /// The most media types that a pattern such as `image/*` may stand for.
    private static let mostTypes = 500

    /// The known media types of a kind, such as `image`.
    package func types(ofKind kind: String) -> [String] {
        var found: Set<String> = []
        for folder in folders {
            for line in Self.lines(of: folder + "/types") where line.utf8.starts(with: (kind + "/").utf8) {
                guard found.count < Self.mostTypes else { break }
                found.insert(String(line))
            }
        }
        return found.sorted()
    }

    private static func lines(of file: String) -> [Substring] {
        guard let bytes = try? File.read(file, limit: 8 << 20) else { return [] }
        return String(wire: bytes).split(separator: "\n")
    }

    /// Searches lines `WEIGHT:TYPE:PATTERN` of shared-mime-info: the most specific matching pattern wins.
    private static func inGlobs(_ file: String, _ name: String) -> String? {
        var best: (type: String, weight: Int, length: Int)?
        for line in lines(of: file) where !line.hasPrefix("#") {
            let parts = line.split(separator: ":", maxSplits: 3)
            guard parts.count >= 3, let weight = Int(parts[0]) else { continue }
            let pattern = parts[2].lowercased()
            let fits =
                pattern.hasPrefix("*.") && !pattern.dropFirst().contains { "*?[".contains($0) }
                ? name.hasSuffix(pattern.dropFirst()) : pattern == name
            guard fits else { continue }
            if let best, (best.weight, best.length) >= (weight, pattern.utf8.count) { continue }
            best = (String(parts[1]), weight, pattern.utf8.count)
        }
        return best?.type
    }

    private static func inTypes(_ name: String) -> String? {
        guard let dot = name.lastIndex(of: ".") else { return nil }
        let ending = name[name.index(after: dot)...]
        for line in lines(of: types) where !line.hasPrefix("#") {
            let words = line.split(whereSeparator: \.isWhitespace)
            if words.dropFirst().contains(ending) { return String(words[0]) }
        }
        return nil
    }
}
