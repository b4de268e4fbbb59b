// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Linux

/// Reads the table `container` of an app that podman runs.
enum ContainerReader {
    static let keys: [Key<ContainerSpecification>] = [
        Key("image") { context, node, container in
            container.isImageWritten = true
            if let text = image(context, node) { container.image = text }
        },
        .optional("name", \.name, name),
        .value("pull", \.pull) { Read.choice($0, $1) },
        .value("pull_timeout", \.pullTimeout, Read.deadline),
        .value("entrypoint", \.entrypoint, Read.command),
        .optional("directory", \.directory, inside),
        .optional("user", \.user, Read.text),
        .value("ports", \.ports, each(port)),
        .value("volumes", \.volumes, each(volume)),
        .value("networks", \.networks, each(network)),
        .value("env_file", \.environmentFiles, Read.paths),
        .value("read_only", \.isReadOnly, Read.boolean),
        .value("tmpfs", \.temporary, each(temporary)),
        .value("devices", \.devices, each(device)),
        .value("cap_add", \.addedCapabilities, Read.texts),
        .value("cap_drop", \.droppedCapabilities, Read.texts),
        .value("security", \.security, Read.texts),
        .value("shm_size", \.sharedMemory, Read.size),
        .optional("hostname", \.hostname, Read.text),
        Key("labels") { context, node, container in
            for (name, value) in TableReader.environment(context, node) { container.labels[name] = value }
        },
        .value("secrets", \.secrets, Read.texts),
        .optional("health", \.health, ReadyReader.healthInside),
        .value("args", \.arguments, each(argument)),
    ]

    /// The members of `container` as texts, to compare them and to show them in a diff.
    @Sendable static func written(_ container: ContainerSpecification?) -> [String: String] {
        guard let container else { return [:] }
        func list(_ words: [String]) -> String { "[" + words.map(quoted).joined(separator: ", ") + "]" }
        var members = ["image": container.image, "pull": container.pull.rawValue]
        members["pull_timeout"] = container.pullTimeout.written
        members["name"] = container.name
        members["directory"] = container.directory
        members["user"] = container.user
        members["hostname"] = container.hostname
        members["shm_size"] = container.sharedMemory.map { "\($0)" }
        if container.isReadOnly { members["read_only"] = "true" }
        let lists = [
            "entrypoint": container.entrypoint, "ports": container.ports, "volumes": container.volumes,
            "networks": container.networks, "env_file": container.environmentFiles, "tmpfs": container.temporary,
            "devices": container.devices, "cap_add": container.addedCapabilities,
            "cap_drop": container.droppedCapabilities, "security": container.security, "secrets": container.secrets,
            "args": container.arguments,
        ]
        for (key, words) in lists where !words.isEmpty { members[key] = list(words) }
        members["health"] = container.health?.written
        if !container.labels.isEmpty {
            members["labels"] = list(container.labels.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" })
        }
        return members
    }

    /// Makes the checks that compare `container` with other keys of the app.
    static func check(_ draft: AppDraft) {
        guard let container = draft.specification.container else { return }
        let app = draft.specification
        if app.bundle != nil {
            draft.error(
                "container",
                "does not go with bundle: the bundle's checks would run outside of the container; write sandbox = true"
            )
        }
        if container.image.isEmpty, !container.isImageWritten {
            draft.error("container", "image is missing: write image = \"docker.io/library/nginx\"")
        }
        if app.standardInput != .null, draft.origins["stdin"] != nil {
            draft.warning("stdin", "does nothing: a container has no standard input, so mount the file (volumes)")
        }
        if container.networks.count > 1, let mode = container.networks.first(where: ContainerSpecification.isMode) {
            draft.error("container", "networks: \(quoted(mode)) is a mode, which goes with no other network")
        }
        if !container.ports.isEmpty, container.networks.first == "host" || container.networks.first == "none" {
            draft.warning("container", "ports do nothing with networks = [\"\(container.networks[0])\"]")
        }
        if !app.supplementaryGroups.isNilOrEmpty, draft.origins["supplementary_groups"] != nil {
            draft.warning("supplementary_groups", "counts for podman, not for the processes in the container")
        }
        if draft.origins["umask"] != nil {
            draft.warning("umask", "counts for podman: write args = [\"--umask=0027\"] in container")
        }
        if app.scenes != nil || app.instance != nil || draft.instances != nil, container.name != nil,
            let name = container.name, !name.utf8.contains(UInt8(ascii: "%"))
        {
            draft.error("container", "name would be the same for each: put %s or %i into it, or remove it")
        }
    }

    // MARK: Values

    private static func each(
        _ problem: @escaping @Sendable (String) -> String?
    ) -> @Sendable (Context, Node) -> [String]? {
        { context, node in
            Read.elements(context, node, of: "strings") { context, node in
                guard let text = Read.text(context, node) else { return nil }
                if let problem = problem(text) {
                    context.error(problem, at: node.position)
                    return nil
                }
                return text
            }
        }
    }

    @Sendable private static func image(_ context: Context, _ node: Node) -> String? {
        guard let text = Read.text(context, node) else { return nil }
        if text.hasPrefix("-") || text.utf8.contains(where: { $0 <= UInt8(ascii: " ") }) {
            context.error("\(quoted(text)) is not the name of an image: write \"REGISTRY/NAME:TAG\"", at: node.position)
            return nil
        }
        return text
    }

    @Sendable private static func name(_ context: Context, _ node: Node) -> String? {
        guard let text = Read.text(context, node) else { return nil }
        guard isName(text, allowing: [UInt8(ascii: "%")]) else {
            context.error(
                "\(quoted(text)) is not a container's name: letters, digits, _, . and -, and a letter or digit first",
                at: node.position
            )
            return nil
        }
        return text
    }

    @Sendable private static func inside(_ context: Context, _ node: Node) -> String? {
        guard let text = Read.text(context, node) else { return nil }
        guard text.hasPrefix("/") else {
            context.error("\(quoted(text)) is a path inside the container and must begin with /", at: node.position)
            return nil
        }
        return text
    }

    private static func isName(_ text: some StringProtocol, allowing others: [UInt8] = []) -> Bool {
        guard let first = text.utf8.first, first.isNameByte || others.contains(first), first != UInt8(ascii: "-"),
            first != UInt8(ascii: "_")
        else { return false }
        return text.utf8.allSatisfy { $0.isNameByte || $0 == UInt8(ascii: ".") || others.contains($0) }
    }

    @Sendable private static func port(_ text: String) -> String? {
        let wrong =
            "\(quoted(text)) is not a port to publish: write \"8080:80\", \"127.0.0.1:8080:80\" or \"53:53/udp\""
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, parts.count == 1 || ["tcp", "udp", "sctp"].contains(parts[1]) else { return wrong }
        var rest = parts[0]
        if rest.hasPrefix("[") {
            guard let end = rest.firstIndex(of: "]"), rest[rest.index(after: end)...].hasPrefix(":") else {
                return wrong
            }
            rest = "0" + rest[rest.index(after: end)...]
        }
        let fields = rest.split(separator: ":", omittingEmptySubsequences: false)
        guard (1...3).contains(fields.count), isPorts(fields[fields.count - 1]) else { return wrong }
        if fields.count == 2, !fields[0].isEmpty, !isPorts(fields[0]) { return wrong }
        if fields.count == 3, !fields[1].isEmpty, !isPorts(fields[1]) { return wrong }
        return nil
    }

    /// Whether the text is a port or a range of ports.
    private static func isPorts(_ text: some StringProtocol) -> Bool {
        // If the text contains a placeholder, the port is unknown until an instance or a scene is created.
        if text.utf8.contains(UInt8(ascii: "%")) { return true }
        let ends = text.split(separator: "-", omittingEmptySubsequences: false).map { UInt16($0) ?? 0 }
        return ends.count == 1 && ends[0] > 0 || ends.count == 2 && ends[0] > 0 && ends[0] <= ends[1]
    }

    @Sendable private static func volume(_ text: String) -> String? {
        let fields = text.split(separator: ":", omittingEmptySubsequences: false)
        let wrong =
            "\(quoted(text)) is not a volume: write \"NAME:/path\" or \"/source:/path\", with \":ro\" if read-only"
        guard (1...3).contains(fields.count) else { return wrong }
        if fields.count == 1 { return fields[0].hasPrefix("/") ? nil : wrong }
        guard fields[1].hasPrefix("/") else { return wrong }
        if fields[0].hasPrefix("/") { return nil }
        if fields[0].hasPrefix(".") || fields[0].hasPrefix("~") {
            return "\(quoted(text)) begins with a relative path: write an absolute one"
        }
        return isName(fields[0], allowing: [UInt8(ascii: "%")]) ? nil : wrong
    }

    @Sendable private static func network(_ text: String) -> String? {
        let name = text.split(separator: ":", maxSplits: 1).first ?? ""
        return ContainerSpecification.isMode(text) || isName(name, allowing: [UInt8(ascii: "%")])
            ? nil : "\(quoted(text)) is not the name of a network"
    }

    @Sendable private static func temporary(_ text: String) -> String? {
        text.hasPrefix("/")
            ? nil : "\(quoted(text)) is not a path inside the container: write \"/tmp\" or \"/tmp:size=64m\""
    }

    @Sendable private static func device(_ text: String) -> String? {
        text.hasPrefix("/") || text.utf8.contains(UInt8(ascii: "="))
            ? nil : "\(quoted(text)) is not a device: write \"/dev/dri\" or \"/dev/ttyUSB0:/dev/tty0:rw\""
    }

    /// Why an option of podman may not be used, for example because Torpor sets it itself; nil if it may be used.
    @Sendable private static func argument(_ text: String) -> String? {
        guard text.hasPrefix("-"), text.utf8.count > 1, text != "--" else {
            return "\(quoted(text)) is not an option: write it and its value as one, such as \"--pids-limit=100\""
        }
        if !text.hasPrefix("--") {
            // Options with one letter may be combined, such as `-dit`.
            let letters = text.dropFirst().prefix { $0 != "=" }
            guard letters.allSatisfy({ "ditPq".contains($0) }) else { return nil }
            return "\(quoted(text)) cannot be used here: \(letters.contains("d") ? needed : terminal)"
        }
        let name = text.split(separator: "=", maxSplits: 1).first.map(String.init) ?? text
        if name.hasPrefix("--health") { return "\(quoted(name)) cannot be used here: write health" }
        return own[name].map { "\(quoted(name)) cannot be used here: \($0)" }
    }

    private static let needed = "Torpor needs it to follow the container"
    private static let terminal = "a container has neither a terminal nor standard input"
    private static let limits = "podman's limits do not count, so write memory_limit, limits or resources of the app"
    private static let own: [String: String] = [
        "--name": "write name", "--pull": "write pull", "--entrypoint": "write entrypoint", "--rm": needed,
        "--replace": needed, "--detach": needed, "--cgroups": needed, "--cgroup-parent": needed, "--pod": needed,
        "--cidfile": needed, "--conmon-pidfile": needed, "--sdnotify": needed, "--log-driver": needed,
        "--restart": "write restart of the app", "--memory": limits, "--cpus": limits, "--cpu-shares": limits,
        "--interactive": terminal, "--tty": terminal,
    ]
}

extension ContainerSpecification {
    /// All texts of the container that may contain a placeholder.
    var texts: [String] {
        [image] + [name, directory, user, hostname].compactMap { $0 } + entrypoint + ports + volumes + networks
            + environmentFiles + temporary + devices + Array(labels.values) + secrets + arguments
            + (health?.probe.kind.words ?? [])
    }

    /// Replaces a placeholder in the texts of the container.
    mutating func put(_ placeholder: Placeholder) {
        func put(_ text: String) -> String { placeholder.put(into: text) }
        image = put(image)
        name = name.map(put)
        directory = directory.map(put)
        user = user.map(put)
        hostname = hostname.map(put)
        for path in [
            \ContainerSpecification.entrypoint, \.ports, \.volumes, \.networks, \.environmentFiles, \.temporary,
            \.devices, \.secrets, \.arguments,
        ] {
            self[keyPath: path] = self[keyPath: path].map(put)
        }
        labels = labels.mapValues(put)
        health?.probe.put(placeholder)
    }
}

extension Optional where Wrapped: Collection {
    fileprivate var isNilOrEmpty: Bool { self?.isEmpty ?? true }
}
