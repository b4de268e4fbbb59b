// SPDX-License-Identifier: Apache-2.0

import WireText

/// The container of a service, which becomes the table `container` of an app.
struct ComposeContainer {
    let node: DataNode
    let folder: String
    let name: String
    let project: ComposeProject
    /// The variables of the user who imports, of which HOME is the home that `~` stands for.
    private let variables: [String: String]
    private var table = OrderedTable<TOMLValue>()
    private var arguments: [String] = []
    private var volumes: [String] = []
    private var temporary: [String] = []

    init(node: DataNode, folder: String, name: String, project: ComposeProject, variables: [String: String]) {
        self.node = node
        self.folder = folder
        self.name = name
        self.project = project
        self.variables = variables
    }

    /// The keys that this type translates, and the keys that have no meaning for podman. `ComposeService` translates
    /// all other keys.
    static let known: Set = [
        "annotations", "build", "cap_add", "cap_drop", "configs", "container_name", "devices", "dns", "dns_opt",
        "dns_search", "domainname", "expose", "extra_hosts", "gpus", "hostname", "image", "init", "ipc", "label_file",
        "links", "mac_address", "network_mode", "networks", "pid", "platform", "privileged", "pull_policy", "read_only",
        "runtime", "secrets", "security_opt", "shm_size", "stdin_open", "sysctls", "tmpfs", "tty", "userns_mode", "uts",
        "volumes", "volumes_from", "attach", "logging",
    ]

    mutating func read(into program: inout ImportedProgram) {
        image(&program)
        guard program.isTranslated else { return }
        if let name = node["container_name"]?.text {
            if program["instances"] == nil {
                table["name"] = .string(name)
            } else {
                program.remark("container_name is left out, since there are several")
            }
        }
        command(&program)
        put("directory", node["working_dir"]?.text.map { SourceTree.join("/", $0) })
        put("user", node["user"]?.text)
        ports(&program)
        program.exposes = !texts("expose").isEmpty
        links(&program)
        volumes(&program)
        networks(&program)
        files(&program)
        rights(&program)
        settings(&program)
        put("volumes", volumes)
        put("tmpfs", temporary)
        put("args", arguments)
        program["container"] = .table(table)
    }

    private mutating func put(_ key: String, _ text: String?) {
        if let text, !text.isEmpty { table[key] = .string(text) }
    }

    private mutating func put(_ key: String, _ texts: [String]) {
        if !texts.isEmpty { table[key] = .strings(texts) }
    }

    /// The texts of a key whose value is a list or a single string.
    private func texts(_ key: String) -> [String] {
        guard let node = node[key] else { return [] }
        return (node.list ?? [node]).compactMap(\.text).filter { !$0.isEmpty }
    }

    /// The names and values of a key whose value is a table or a list of `NAME=value`.
    private func pairs(_ key: String) -> [(key: String, value: String)] {
        (node[key]?.members ?? []).map { ($0.key, $0.value.text ?? "") }
            + (node[key]?.list ?? []).compactMap(\.text).map { text in
                guard let equals = text.firstIndex(of: "=") else { return (text, "") }
                return (String(text[..<equals]), String(text[text.index(after: equals)...]))
            }
    }

    // MARK: What runs

    private mutating func image(_ program: inout ImportedProgram) {
        let build = node["build"].flatMap { $0.isNull ? nil : $0 }
        program.origin = node["image"]?.text
        if let build, program.origin == nil {
            let parts = [build.text ?? build["context"]?.text ?? ".", build["dockerfile"]?.text, build["target"]?.text]
            program.origin = "build " + parts.map { $0 ?? "" }.joined(separator: "\n")
        }
        guard let text = node["image"]?.text, !text.isEmpty else {
            guard let build else {
                return program.cannot(
                    node["image"] == nil
                        ? "it has neither image nor build"
                        : "its image is empty: set the variable in it, such as in .env"
                )
            }
            let image = "localhost/\(project.name)_\(name.lowercased())"
            table["image"] = .string(image)
            table["pull"] = .string("never")
            return remarkBuild(build, image, &program)
        }
        let image = ContainerValues.qualified(text)
        table["image"] = .string(image)
        switch node["pull_policy"]?.text {
        case "always": table["pull"] = .string("always")
        case "never": table["pull"] = .string("never")
        case nil, "missing", "if_not_present", "": if build != nil { table["pull"] = .string("never") }
        case "build": table["pull"] = .string("never")
        case let policy?: program.remark("pull_policy = \(quoted(policy)) is taken as missing")
        }
        if let build { remarkBuild(build, image, &program) }
    }

    private func remarkBuild(_ build: DataNode, _ image: String, _ program: inout ImportedProgram) {
        if image.hasPrefix("-") { return program.cannot("its image \(quoted(image)) begins with “-”", at: build.place) }
        let context = build.text ?? build["context"]?.text ?? "."
        var words = ["podman", "build", "-t", image]
        if let file = build["dockerfile"]?.text {
            words += ["-f", SourceTree.join(SourceTree.join(folder, context), file)]
        }
        if let target = build["target"]?.text { words += ["--target", target] }
        for (key, option) in [("network", "--network"), ("shm_size", "--shm-size")] {
            if let text = build[key]?.text { words += [option, text] }
        }
        for (key, option) in [("cache_from", "--cache-from"), ("cache_to", "--cache-to"), ("platforms", "--platform")] {
            for text in (build[key]?.list ?? []).compactMap(\.text) { words += [option, text] }
        }
        if build["platforms"] == nil, let platform = node["platform"]?.text { words += ["--platform", platform] }
        for (key, option) in [("labels", "--label"), ("additional_contexts", "--build-context")] {
            for (name, value) in build[key]?.members ?? [] { words += [option, "\(name)=\(value.text ?? "")"] }
            for text in (build[key]?.list ?? []).compactMap(\.text) { words += [option, text] }
        }
        let given = build["args"]
        // podman, as docker, takes an argument without a value from its own environment.
        for (name, value) in given?.members ?? [] {
            words += ["--build-arg", value.text.map { "\(name)=\($0)" } ?? name]
        }
        for text in (given?.list ?? []).compactMap(\.text) { words += ["--build-arg", text] }
        words.append("--")
        words.append(Self.isRemote(context) ? context : SourceTree.join(folder, context))
        program.remark(
            "its image is built: run ‘\(words.map(ShellWords.quote).joined(separator: " "))’ before it starts, and "
                + "after each change",
            at: build.place
        )
        let read: Set = [
            "context", "dockerfile", "target", "args", "network", "shm_size", "cache_from", "cache_to", "platforms",
            "labels", "additional_contexts", "tags",
        ]
        var leftOut = LeftOutKeys()
        for (key, node) in build.members ?? [] where !read.contains(key) && !key.hasPrefix("x-") {
            leftOut.add("build.\(key)", because: "podman-build(1) may have an option for it", at: node.place)
        }
        program.remark(leftOut)
    }

    static func isRemote(_ context: String) -> Bool {
        ["http://", "https://", "git@", "git://", "ssh://"].contains { context.hasPrefix($0) }
    }

    private mutating func command(_ program: inout ImportedProgram) {
        func words(_ key: String) -> [String]? {
            guard let node = node[key], !node.isNull else { return nil }
            if let list = node.list { return list.compactMap(\.text) }
            guard let text = node.text else { return [] }
            guard let words = ShellWords.split(text) else {
                program.cannot("its \(key) has a quote that is not closed")
                return nil
            }
            return words
        }
        var command = words("command") ?? []
        if let entry = words("entrypoint") {
            // An empty entrypoint removes the entrypoint of the image, so the first word of the command is the program.
            if entry.isEmpty, !command.isEmpty {
                put("entrypoint", [command.removeFirst()])
            } else {
                put("entrypoint", entry)
            }
        }
        if command.first == "" {
            program.remark("its command begins with an empty word, and is left out")
            command = []
        }
        ContainerValues.command(command, &program)
    }

    // MARK: Ports, volumes, networks

    private mutating func ports(_ program: inout ImportedProgram) {
        var ports: [String] = []
        func add(_ text: String, _ place: SourceLine?) {
            if let port = ContainerValues.port(text, at: place, &program) { ports.append(port) }
        }
        for port in node["ports"]?.list ?? [] {
            if let text = port.text {
                if text.isEmpty || text.hasSuffix(":") {
                    program.remark("the port \(quoted(text)) is incomplete, and is left out", at: port.place)
                } else {
                    add(text, port.place)
                }
                continue
            }
            guard let target = port["target"]?.text else { continue }
            let host = port["host_ip"]?.text.map { $0.contains(":") ? "[\($0)]:" : $0 + ":" } ?? ""
            let published = port["published"]?.text
            let protocolName = port["protocol"]?.text.map { $0 == "tcp" ? "" : "/" + $0 } ?? ""
            let outside = published.map { $0 + ":" } ?? (host.isEmpty ? "" : ":")
            add(host + outside + target + protocolName, port.place)
        }
        put("ports", ports)
        if program["instances"] != nil, ports.contains(where: { $0.contains(":") }) {
            program.remark("its instances would publish the same port: write %i into ports, such as \"808%i:80\"")
        }
    }

    /// Translates `links`: the linked service is started first, and gets another name in the network.
    private func links(_ program: inout ImportedProgram) {
        for link in texts("links") {
            let parts = link.split(separator: ":", maxSplits: 1).map(String.init)
            guard let other = parts.first else { continue }
            program.requires.append(other)
            if let alias = parts.last, !alias.utf8.elementsEqual(other.utf8) {
                program.links.append((other, alias, node["links"]?.place))
            }
        }
    }

    private mutating func volumes(_ program: inout ImportedProgram) {
        for volume in node["volumes"]?.list ?? [] {
            if let text = volume.text { add(text, &program) } else { add(volume, &program) }
        }
        for text in texts("tmpfs") { temporary.append(text) }
        for text in texts("volumes_from") { share(text, &program) }
    }

    /// Mounts the volumes of another service or container: `SERVICE[:ro]` or `container:NAME[:ro]`.
    private mutating func share(_ text: String, _ program: inout ImportedProgram) {
        var parts = text.split(separator: ":").map(String.init)
        let isContainer = parts.count > 1 && parts[0] == "container"
        if isContainer { parts.removeFirst() }
        guard let other = parts.first else { return }
        let options = parts.count > 1 && parts[1] == "ro" ? ":ro" : ""
        if isContainer {
            arguments.append("--volumes-from=" + other + options)
            program.remark("the container \(quoted(other)) must exist already: it has the volumes of that one")
        } else {
            program.requires.append(other)
            program.volumesFrom.append((other, options))
        }
    }

    /// Adds a volume in the short form, a string.
    private mutating func add(_ text: String, _ program: inout ImportedProgram) {
        if let volume = ContainerValues.volume(home(text), source: { source($0, &program) }) {
            volumes.append(volume)
        } else {
            program.remark("the volume \(quoted(text)) begins at a user's home, and is left out: write its path")
        }
    }

    /// The path with the user's home instead of `~`, if that is known.
    private func home(_ text: String) -> String {
        guard text == "~" || text.hasPrefix("~/"), let home = variables["HOME"], home.hasPrefix("/") else {
            return text
        }
        return home + text.dropFirst()
    }

    private func source(_ text: String, _ program: inout ImportedProgram) -> String {
        if text.hasPrefix("/") || text.hasPrefix(".") { return SourceTree.join(folder, text) }
        if let problem = project.problem(ofVolume: text) { program.remark(problem) }
        return project.volume(text)
    }

    /// Adds a volume in the long form, a table.
    private mutating func add(_ volume: DataNode, _ program: inout ImportedProgram) {
        guard let target = volume["target"]?.text ?? volume["destination"]?.text ?? volume["dst"]?.text else { return }
        let isReadOnly = volume["read_only"]?.flag == true
        if volume["volume"]?["subpath"]?.isNull == false || volume["image"]?["subpath"]?.isNull == false {
            return program.cannot(
                "its volume at \(quoted(target)) is a part of one (subpath), which volumes cannot say",
                at: volume.place
            )
        }
        let kind = volume["type"]?.text ?? "volume"
        var options = isReadOnly ? ["ro"] : []
        switch kind {
        case "tmpfs":
            if let size = volume["tmpfs"]?["size"]?.text {
                // The kernel knows k, m and g, but not kb.
                let isLong = size.last == "b" || size.last == "B"
                options.append("size=" + (isLong ? Amounts.bytes(size).map { "\($0)" } ?? size : size))
            }
            if let mode = volume["tmpfs"]?["mode"].flatMap(Amounts.mode) { options.append("mode=" + mode) }
            temporary.append(target + (options.isEmpty ? "" : ":" + options.joined(separator: ",")))
        case "bind", "volume":
            guard let from = (volume["source"] ?? volume["src"])?.text else { return volumes.append(target) }
            if let propagation = volume["bind"]?["propagation"]?.text {
                if ContainerValues.propagations.contains(propagation) {
                    options.append(propagation)
                } else {
                    program.remark("\(quoted(propagation)) is no propagation, and is left out", at: volume.place)
                }
            }
            if let label = volume["bind"]?["selinux"]?.text, ["z", "Z"].contains(label) { options.append(label) }
            if kind == "volume", volume["volume"]?["nocopy"]?.flag == true { options.append("nocopy") }
            let path = home(from)
            if path.hasPrefix("~") {
                return program.remark(
                    "the volume \(quoted(from)) begins at a user's home, and is left out: write its path",
                    at: volume.place
                )
            }
            let start = kind == "bind" ? SourceTree.join(folder, path) : source(path, &program)
            volumes.append(start + ":" + target + (options.isEmpty ? "" : ":" + options.joined(separator: ",")))
        case let kind: program.remark("a volume of the type \(quoted(kind)) is left out", at: volume.place)
        }
    }

    private mutating func networks(_ program: inout ImportedProgram) {
        // The service's own address counts in its first network.
        var hardware = node["mac_address"]?.text
        if let mode = node["network_mode"]?.text, !mode.isEmpty {
            if mode.hasPrefix("service:") {
                let other = String(mode.dropFirst(8))
                program.joined = other
                program.requires.append(other)
            } else {
                put("networks", [mode])
                if mode == "bridge", let address = hardware { arguments.append("--mac-address=" + address) }
            }
            return
        }
        let named = node["networks"]
        let keys =
            named?.members?.map { ($0.key, Optional($0.value)) }
            ?? (named?.list ?? []).compactMap { node in
                node.text.map { ($0, nil) }
            }
        guard !keys.isEmpty else {
            let options = hardware.map { ":alias=\(name),mac=\($0)" } ?? ""
            return put("networks", [project.usualNetwork + options])
        }
        var result: [String] = []
        for (key, rule) in keys {
            var options: [String] = []
            let aliases = (rule?["aliases"]?.list ?? []).compactMap(\.text)
            for name in ["driver_opts", "link_local_ips", "priority", "gw_priority"] {
                guard let value = rule?[name], !value.isNull else { continue }
                program.remark(
                    "networks.\(name) is left out: podman-run(1) may have an option for it",
                    at: value.place
                )
            }
            if !aliases.isEmpty { options += ([name] + aliases).map { "alias=" + $0 } }
            if let address = rule?["ipv4_address"]?.text { options.append("ip=" + address) }
            if let address = rule?["ipv6_address"]?.text { options.append("ip6=" + address) }
            if let address = rule?["mac_address"]?.text ?? hardware { options.append("mac=" + address) }
            hardware = nil
            if let interface = rule?["interface_name"]?.text { options.append("interface_name=" + interface) }
            if !options.isEmpty, aliases.isEmpty { options.insert("alias=" + name, at: 0) }
            let network = key == "default" ? project.usualNetwork : project.network(key)
            result.append(network + (options.isEmpty ? "" : ":" + options.joined(separator: ",")))
        }
        put("networks", result)
    }

    // MARK: Files and rights

    private mutating func files(_ program: inout ImportedProgram) {
        var secrets: [String] = []
        for (key, isSecret) in [("secrets", true), ("configs", false)] {
            for entry in node[key]?.list ?? [] {
                guard let source = entry.text ?? entry["source"]?.text else { continue }
                let found = project.file(source, isSecret: isSecret, folder)
                let target = entry["target"]?.text ?? source
                let path = target.hasPrefix("/") ? target : (isSecret ? "/run/secrets/" : "/") + target
                if let file = found.path {
                    volumes.append("\(file):\(path):ro")
                } else if let name = found.name {
                    var options = target == source ? [] : ["target=" + target]
                    for key in ["uid", "gid"] { if let id = entry[key]?.text { options.append("\(key)=\(id)") } }
                    if let mode = entry["mode"].flatMap(Amounts.mode) { options.append("mode=" + mode) }
                    secrets.append(([name] + options).joined(separator: ","))
                    program.remark(
                        "the secret \(quoted(name)) must be podman's: ‘podman secret create’ makes it",
                        at: entry.place
                    )
                } else {
                    program.remark(
                        "\(key): \(quoted(source)) has no file, and is left out",
                        at: entry.place
                    )
                }
            }
        }
        put("secrets", secrets)
        put("devices", texts("devices") + graphicsCards(&program))
    }

    private mutating func rights(_ program: inout ImportedProgram) {
        put("cap_add", texts("cap_add"))
        put("cap_drop", texts("cap_drop"))
        put(
            "security",
            texts("security_opt").compactMap { ContainerValues.security($0, folder: folder) }
        )
        if node["privileged"]?.flag == true { arguments.append("--privileged") }
        if node["read_only"]?.flag == true { table["read_only"] = .boolean(true) }
        for group in texts("group_add") { arguments.append("--group-add=" + group) }
        if node["tty"]?.flag == true || node["stdin_open"]?.flag == true {
            program.remark("has neither a terminal nor standard input: tty and stdin_open are left out")
        }
        if node["logging"] != nil {
            program.remark("logging is left out: its output is in the log directory, and ‘torpor logs’ shows it")
        }
    }

    private mutating func settings(_ program: inout ImportedProgram) {
        put("hostname", node["hostname"]?.text)
        if let text = node["shm_size"]?.text {
            if let bytes = Amounts.bytes(text), bytes > 0 {
                put("shm_size", Amounts.size(bytes))
            } else {
                program.remark("shm_size = \(quoted(text)) is not a size, and is left out")
            }
        }
        var labels = OrderedTable<TOMLValue>()
        for (name, value) in pairs("labels") where !name.isEmpty { labels[name] = .string(value) }
        if !labels.isEmpty { table["labels"] = .table(labels) }
        if node["init"]?.flag == true { arguments.append("--init") }
        let options = [
            ("dns", "dns"), ("dns_opt", "dns-option"), ("dns_search", "dns-search"), ("platform", "platform"),
            ("pid", "pid"), ("ipc", "ipc"), ("uts", "uts"), ("userns_mode", "userns"),
        ]
        if texts("pid").contains("host") { program.cannot(ContainerValues.hostProcesses, at: node["pid"]?.place) }
        for (key, option) in options {
            for text in texts(key) {
                if ["ipc", "pid"].contains(key), text.hasPrefix("service:") {
                    let other = String(text.dropFirst("service:".count))
                    program.requires.append(other)
                    program.namespaces.append((option, other))
                } else {
                    arguments.append("--\(option)=\(text)")
                }
            }
        }
        for (host, address) in pairs("extra_hosts") {
            // In the older form of `extra_hosts`, an entry of the list is "host:address".
            let text = address.isEmpty ? host : "\(host):\(address)"
            if text.hasSuffix(":host-gateway") {
                program.remark(
                    "the host \(quoted(host)) needs podman 4.7 (host-gateway): an older one refuses it, and has "
                        + "host.containers.internal for the machine",
                    at: node["extra_hosts"]?.place
                )
            }
            // Only docker takes an IPv6 address in brackets.
            arguments.append("--add-host=" + text.filter { $0 != "[" && $0 != "]" })
        }
        for (name, value) in pairs("sysctls") { arguments.append("--sysctl=\(name)=\(value)") }
        for (name, value) in pairs("annotations") { arguments.append("--annotation=\(name)=\(value)") }
        for key in ["domainname", "runtime", "label_file"] where !texts(key).isEmpty {
            program.remark("\(key) is left out: podman-run(1) may have an option for it, which goes into args")
        }
    }
}
