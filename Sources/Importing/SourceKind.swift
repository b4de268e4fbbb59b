// SPDX-License-Identifier: Apache-2.0

/// The kinds of configurations that can be imported.
public enum SourceKind: String, Sendable, CaseIterable {
    /// A Procfile, which foreman, overmind, honcho and Heroku read.
    case procfile
    /// The INI files of supervisord.
    case supervisord
    /// A compose file.
    case compose
    /// An ecosystem file of PM2, in JSON or YAML.
    case pm2
    /// A folder of service directories for s6 or s6-rc.
    case s6
    /// A folder of service directories for runit.
    case runit
    /// Units of systemd (services, sockets, timers and paths).
    case systemd
    /// Containers of Quadlet, podman's units for systemd.
    case quadlet
    /// Command lines of docker run and podman run.
    case dockerRun = "docker-run"

    /// The kind with an article, for a sentence.
    public var title: String {
        switch self {
        case .procfile: "a Procfile"
        case .supervisord: "a configuration of supervisord"
        case .compose: "a compose file"
        case .pm2: "an ecosystem file of PM2"
        case .s6: "service directories of s6"
        case .runit: "service directories of runit"
        case .systemd: "units of systemd"
        case .quadlet: "units of Quadlet"
        case .dockerRun: "command lines of docker run"
        }
    }
}

extension SourceKind {
    /// Detects the kind from a file's name and text; nil if unknown.
    static func ofFile(_ path: String, _ text: String) -> SourceKind? {
        let name = SourceTree.lastPart(path).lowercased()
        let isYAML = name.hasSuffix(".yml") || name.hasSuffix(".yaml")
        let isJSON = name.hasSuffix(".json") || name.hasSuffix(".json5")
        if name.hasPrefix("procfile") || name.hasSuffix(".procfile") || name.hasSuffix("__procfile") {
            return .procfile
        }
        if Quadlet.suffixes.contains(where: { name.hasSuffix($0) }) { return .quadlet }
        if unitSuffixes.contains(where: { name.hasSuffix($0) }) { return .systemd }
        if name.contains("supervisor"), name.hasSuffix(".conf") || name.hasSuffix(".ini") { return .supervisord }
        if name.hasSuffix(".pm2") || name.hasSuffix(".pm2.bak") { return .pm2 }
        if isYAML || isJSON {
            if name.contains("compose") { return .compose }
            if name.contains("ecosystem") || name.contains("pm2") { return .pm2 }
        }
        return ofText(text, isJSON: isJSON)
    }

    static let unitSuffixes = [".service", ".socket", ".timer", ".path"]
    /// Suffixes of systemd units that start no program.
    static let otherUnitSuffixes = [".target", ".mount", ".automount", ".swap", ".slice", ".scope", ".device"]

    /// Detects the kind from a text. A Procfile is recognised only by its name, because many other files, such as
    /// /etc/passwd, contain lines of the form `NAME: TEXT`.
    private static func ofText(_ text: String, isJSON: Bool) -> SourceKind? {
        // The section [Unit] does not decide, because both systemd's and Quadlet's units contain it.
        var isUnit = false
        for line in text.split(whereSeparator: \.isNewline).prefix(2_000) {
            let trimmed = line.trimmed
            if trimmed == "[Unit]" { isUnit = true }
            for section in ["program:", "supervisord", "supervisorctl", "group:", "eventlistener:", "fcgi-program:"]
            where trimmed.hasPrefix("[\(section)") {
                return .supervisord
            }
            if Quadlet.sections.contains(where: { trimmed == "[\($0)]" }) { return .quadlet }
            if ["[Service]", "[Install]"].contains(trimmed) { return .systemd }
            if commands.contains(where: { trimmed.hasPrefix($0) }) { return .dockerRun }
            // In a script, a docker command may follow a change of the working directory in the same line.
            if ["cd ", "cd;", "(cd "].contains(where: { trimmed.hasPrefix($0) }),
                commands.contains(where: { trimmed.contains("&& " + $0) || trimmed.contains("; " + $0) })
            {
                return .dockerRun
            }
            if line.hasPrefix("services:") { return .compose }
            if line.hasPrefix("apps:") { return .pm2 }
        }
        return isUnit ? .systemd : isJSON ? .pm2 : nil
    }

    private static let commands = [
        "docker run ", "podman run ", "docker container run ", "podman container run ", "sudo docker run ",
        "sudo podman run ",
    ]

    /// Detects the kind of a folder; nil if unknown.
    static func ofFolder(_ path: String, _ tree: SourceTree) -> SourceKind? {
        let names = tree.names(path) ?? []
        if names.contains(where: { name in Quadlet.programs.contains { name.hasSuffix($0) } }) { return .quadlet }
        if names.contains(where: { name in unitSuffixes.contains { name.hasSuffix($0) } }) { return .systemd }
        let isOne = names.contains("run") || (names.contains("type") && names.contains("up"))
        let folders = isOne ? [path] : names.map { path + "/" + $0 }.filter { tree.names($0) != nil }
        let s6: Set = [
            "type", "notification-fd", "dependencies.d", "dependencies", "timeout-kill", "timeout-finish",
            "contents.d", "contents", "down-signal", "producer-for", "consumer-for", "up", "max-death-tally",
            "flag-essential",
        ]
        let runit: Set = ["check", "supervise", "control", "conf"]
        var services = false
        for folder in folders {
            let names = Set(tree.names(folder) ?? [])
            if !names.isDisjoint(with: s6), names.contains("run") || names.contains("type") { return .s6 }
            if names.contains("run") {
                services = true
                if !names.isDisjoint(with: runit) || tree.names(folder + "/log")?.contains("run") == true {
                    return .runit
                }
            }
        }
        guard services else { return nil }
        return ["sv", "runit", "runsvdir"].contains(SourceTree.lastPart(path)) ? .runit : .s6
    }
}

extension StringProtocol {
    /// The text without white space at both ends.
    var trimmed: String {
        var part = self[...]
        while let first = part.unicodeScalars.first, first.properties.isWhitespace { part = part.dropScalar() }
        while let last = part.unicodeScalars.last, last.properties.isWhitespace {
            part = part[..<part.unicodeScalars.index(before: part.endIndex)]
        }
        return String(part)
    }
}

extension StringProtocol where SubSequence == Self {
    fileprivate func dropScalar() -> Self { self[unicodeScalars.index(after: startIndex)...] }
}
