// SPDX-License-Identifier: Apache-2.0

import Configuration

/// Translates options of `docker run` and `podman run` to keys of an app and of its table `container`.
struct ContainerOptions {
    /// The folder from which relative paths start.
    let folder: String
    let variables: [String: String]
    private var table = OrderedTable<TOMLValue>()
    private var lists = OrderedTable<[String]>()
    private var labels = OrderedTable<TOMLValue>()
    private var health = OrderedTable<DataNode>()
    private var endsUnhealthy = false
    private var aliases: [String] = []
    private var entrypoint: [String]?
    /// The period of the quota of processor time.
    private var period: String?
    private var quota: String?
    private var leftOut = LeftOutKeys()
    /// The name of the pod that the container is in; nil if it is in none.
    private(set) var pod: String?

    init(folder: String, variables: [String: String]) {
        self.folder = folder
        self.variables = variables
    }

    /// The container's name; nil if the options specify none.
    var name: String? {
        guard case .string(let name) = table["name"] else { return nil }
        return name
    }

    var networks: [String] { lists["networks"] ?? [] }

    private mutating func append(_ value: String, to key: String) {
        var values = lists[key] ?? []
        // Remove the array from the dictionary while it is changed. Otherwise the dictionary keeps a reference, and
        // each added value copies the array.
        lists[key] = []
        values.append(value)
        lists[key] = values
    }

    mutating func replaceNetworks(_ networks: [String]) { lists["networks"] = networks }

    mutating func argument(_ text: String) { append(text, to: "args") }

    /// Adds options of a command line.
    mutating func add(_ options: PodmanOptions, at place: SourceLine? = nil, _ program: inout ImportedProgram) {
        for given in options.given {
            add(given.name, given.option, given.value, shown: "--" + given.name, at: place, &program)
        }
    }

    /// Adds one option, given by its name.
    ///
    /// - Parameter shown: the option's name as remarks show it.
    mutating func add(
        _ name: String,
        _ value: String,
        shown: String,
        at place: SourceLine?,
        _ program: inout ImportedProgram
    ) {
        guard let option = PodmanOption.all[name] else { return }
        add(name, option, value, shown: shown, at: place, &program)
    }

    private mutating func add(
        _ name: String,
        _ option: PodmanOption,
        _ value: String,
        shown: String,
        at place: SourceLine?,
        _ program: inout ImportedProgram
    ) {
        switch option.kind {
        case .list(let key): append(value, to: key)
        case .text(let key): if !value.isEmpty { table[key] = .string(value) }
        case .argument:
            if name == "pid", value == "host" { return program.cannot(ContainerValues.hostProcesses, at: place) }
            let isOn = !option.hasValue && value == "true"
            argument(isOn ? "--\(name)" : "--\(name)=\(value)")
        case .silent: break
        case .dropped(let reason):
            if option.hasValue || value == "true" { leftOut.add(shown, because: reason, at: place) }
        case .special: special(name, value, shown, place, &program)
        }
    }

    private mutating func special(
        _ name: String,
        _ value: String,
        _ shown: String,
        _ place: SourceLine?,
        _ program: inout ImportedProgram
    ) {
        switch name {
        case "blkio-weight": ContainerValues.diskWeight(value, shown: shown, &program)
        case "cpu-period": period = value
        case "cpu-quota": quota = value
        case "cpu-shares": ContainerValues.processorShares(value, shown: shown, &program)
        case "cpus": ContainerValues.processors(value, &program)
        case "memory": ContainerValues.memory(value, &program)
        case "memory-reservation": ContainerValues.reservation(value, shown: shown, &program)
        case "oom-score-adj": ContainerValues.killScore(value, shown: shown, &program)
        case "pids-limit":
            if let number = Int(value) { ContainerValues.tasks(number, &program) }
        case "ulimit":
            let parts = value.split(separator: "=", maxSplits: 1).map(String.init)
            if parts.count == 2 {
                ContainerValues.limit(parts[0], parts[1], &program)
            } else {
                program.remark("\(shown) \(quoted(value)) is not NAME=LIMIT, and is left out", at: place)
            }
        case "entrypoint": entrypoint = Self.entrypoint(value)
        case "env": variable(value, shown, place, &program)
        case "env-file": append(SourceTree.join(folder, value), to: "env_file")
        case "label":
            let parts = value.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            if let key = parts.first, !key.isEmpty { labels[key] = .string(parts.count > 1 ? parts[1] : "") }
        case "volume": volume(value, place, &program)
        case "mount": mount(value, place, &program)
        case "network": network(value)
        case "network-alias": aliases.append(value)
        case "link":
            let other = String(value.prefix { $0 != ":" })
            program.requires.append(other)
            program.remark(
                "\(shown)=\(value) is left out: write both into one network, as networks = [\"apps\"]",
                at: place
            )
        case "volumes-from":
            program.requires.append(String(value.prefix { $0 != ":" }))
            argument("--volumes-from=" + value)
        case "security-opt":
            if let text = ContainerValues.security(value, folder: folder) { append(text, to: "security") }
        case "gpus":
            for card in ContainerValues.graphicsCards(value) { append(card, to: "devices") }
            program.remark("\(shown)=\(value) \(ContainerValues.cardRemark)", at: place)
        case "publish": if let port = ContainerValues.port(value, at: place, &program) { append(port, to: "ports") }
        case "read-only": if value == "true" { table["read_only"] = .boolean(true) }
        case "pull":
            let policies = [
                "always": "always", "true": "always", "never": "never", "false": "missing", "newer": "newer",
            ]
            if let policy = policies[value] {
                table["pull"] = .string(policy)
            } else if value != "missing", !value.isEmpty {
                program.remark("\(shown)=\(value) is not known, and is taken as missing", at: place)
            }
        case "restart": ContainerValues.restart(value, &program)
        case "shm-size":
            if let bytes = Amounts.bytes(value), bytes > 0 {
                table["shm_size"] = .string(Amounts.size(bytes))
            } else {
                program.remark("\(shown)=\(value) is not a size, and is left out", at: place)
            }
        case "stop-signal": program["stop_signal"] = .string(Amounts.signal(value))
        case "stop-timeout":
            if value == "-1" {
                program["grace"] = .string("none")
            } else if let seconds = Double(value), let time = Amounts.duration(seconds: seconds) {
                program["grace"] = .string(time)
            } else {
                program.remark("\(shown)=\(value) is not a number of seconds, and is left out", at: place)
            }
        case "no-healthcheck": health = [("disable", DataNode(value: .scalar(value, isPlain: true), line: 0))]
        case "health-cmd": health["test"] = Self.test(value, place)
        case "health-on-failure": endsUnhealthy = ["kill", "restart", "stop"].contains(value)
        case "health-interval" where value == "disable": break
        case "health-interval", "health-timeout", "health-retries", "health-start-period":
            let key = String(name.dropFirst("health-".count).replacing("-", with: "_"))
            health[key] = DataNode(value: .scalar(value, isPlain: true), line: place?.number ?? 0, file: place?.file)
        case "rootfs":
            if value == "true" { program.cannot("it has a root file system (\(shown)) and no image", at: place) }
        case "pod" where !value.hasPrefix("new:"): pod = value
        case "pod-id-file": program.cannot("it is in a pod (\(shown)) whose name is not known here", at: place)
        default:
            program.cannot("it makes a pod (\(shown)): make that by ‘podman pod create’ in a line before", at: place)
        }
    }

    // MARK: Values

    /// Parses an entrypoint: a list of words in JSON, or a single word. An empty entrypoint removes the entrypoint of
    /// the image.
    private static func entrypoint(_ text: String) -> [String] {
        if text.hasPrefix("["), let words = DataNode.words(ofJSON: text) { return words }
        return text.isEmpty ? [] : [text]
    }

    private static func test(_ text: String, _ place: SourceLine?) -> DataNode {
        var node = DataNode(value: .scalar(text, isPlain: false), line: place?.number ?? 0, file: place?.file)
        if text.hasPrefix("["), let words = DataNode.words(ofJSON: text), let kind = words.first {
            let all = ["CMD", "CMD-SHELL", "NONE"].contains(kind) ? words : ["CMD"] + words
            node.value = .list(
                all.map { DataNode(value: .scalar($0, isPlain: false), line: node.line, file: node.file) }
            )
        } else if text == "none" {
            node.value = .list([DataNode(value: .scalar("NONE", isPlain: false), line: 0)])
        }
        return node
    }

    private func variable(_ text: String, _ shown: String, _ place: SourceLine?, _ program: inout ImportedProgram) {
        if let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")) {
            program.setVariable(String(text[..<equals]), String(text[text.utf8.index(after: equals)...]))
        } else if let value = variables[text] {
            program.setVariable(text, value)
        } else {
            program.remark("\(shown)=\(text) has no value here, and is left out", at: place)
        }
    }

    /// Adds a volume. A named volume keeps its name in podman; a relative path becomes absolute.
    private mutating func volume(_ text: String, _ place: SourceLine?, _ program: inout ImportedProgram) {
        let folder = folder
        if let volume = ContainerValues.volume(text, source: { $0.hasPrefix(".") ? SourceTree.join(folder, $0) : $0 }) {
            append(volume, to: "volumes")
        } else {
            program.remark(
                "the volume \(quoted(text)) begins at a user's home, and is left out: write its path",
                at: place
            )
        }
    }

    /// Adds a mount such as `type=bind,source=/a,target=/b,readonly`. If it has no short form, it is passed to podman
    /// as an argument.
    private mutating func mount(_ text: String, _ place: SourceLine?, _ program: inout ImportedProgram) {
        var (kind, source, target, isReadOnly, isPlain) = ("volume", "", "", false, !text.contains("\""))
        var size: String?
        var fields = text.split(separator: ",").map(String.init)
        for (index, field) in fields.enumerated() {
            let parts = field.split(separator: "=", maxSplits: 1).map(String.init)
            let value = parts.count > 1 ? parts[1] : "true"
            switch parts.first {
            case "type": kind = value
            case "source", "src":
                source = value.hasPrefix(".") ? SourceTree.join(folder, value) : value
                fields[index] = "source=" + source
            case "target", "dst", "destination": target = value
            case "readonly", "ro":
                guard let flag = Amounts.truth(value) else {
                    return program.cannot("\(quoted(field)) of a mount is neither true nor false", at: place)
                }
                isReadOnly = flag
            case "tmpfs-size": size = value
            default: isPlain = false
            }
        }
        guard isPlain, !target.isEmpty else { return argument("--mount=" + fields.joined(separator: ",")) }
        switch kind {
        case "bind" where !source.isEmpty, "volume":
            let from = source.isEmpty ? "" : source + ":"
            append(from + target + (isReadOnly && !source.isEmpty ? ":ro" : ""), to: "volumes")
        case "tmpfs":
            let options = (size.map { ["size=" + $0] } ?? []) + (isReadOnly ? ["ro"] : [])
            append(target + (options.isEmpty ? "" : ":" + options.joined(separator: ",")), to: "tmpfs")
        default: argument("--mount=" + fields.joined(separator: ","))
        }
    }

    /// Adds a network: a name, a mode, or docker's syntax `name=NAME,alias=…`.
    private mutating func network(_ text: String) {
        guard text.hasPrefix("name=") else {
            // In docker and in podman, these words mean the default network, so no network need be set.
            if text == "default" || text == "bridge" || text.isEmpty { return }
            return append(text, to: "networks")
        }
        var name = ""
        var options: [String] = []
        for field in text.split(separator: ",").map(String.init) {
            if field.hasPrefix("name=") { name = String(field.dropFirst(5)) } else { options.append(field) }
        }
        append(name + (options.isEmpty ? "" : ":" + options.joined(separator: ",")), to: "networks")
    }

    // MARK: The whole

    /// Stores all translated options in the app's keys.
    mutating func finish(image: String, command: [String], _ program: inout ImportedProgram) {
        var command = command
        if let entrypoint {
            if entrypoint.isEmpty, !command.isEmpty {
                table["entrypoint"] = .strings([command.removeFirst()])
            } else if !entrypoint.isEmpty {
                table["entrypoint"] = .strings(entrypoint)
            }
        }
        if command.first == "" {
            program.remark("its command begins with an empty word, and is left out")
            command = []
        }
        ContainerValues.command(command, &program)
        named(program.name)
        ContainerValues.quota(quota, period: period, shown: ("--cpu-quota", "--cpu-period"), &program)
        var whole: OrderedTable = [("image", TOMLValue.string(image))]
        for (key, value) in table { whole[key] = value }
        let keys = [
            "ports", "networks", "volumes", "env_file", "tmpfs", "devices", "cap_add", "cap_drop", "security",
            "secrets",
        ]
        for key in keys { if let values = lists[key], !values.isEmpty { whole[key] = .strings(values) } }
        if !labels.isEmpty { whole["labels"] = .table(labels) }
        if let arguments = lists["args"] { whole["args"] = .strings(arguments) }
        program["container"] = .table(whole)
        if !health.isEmpty {
            if health["test"] == nil, health["disable"] == nil {
                leftOut.add("the health check's times", because: "its command is the image's, which is not known")
            } else {
                var check = ComposeHealth(node: DataNode(value: .map(health), line: 0), folder: folder)
                (check.title, check.ends) = ("the health check", endsUnhealthy)
                check.read(into: &program)
            }
        }
        program.remark(leftOut)
    }

    /// Adds an alias for the container in its network. If the container has exactly one network, the alias becomes an
    /// option of that network.
    private mutating func named(_ name: String) {
        guard !aliases.isEmpty else { return }
        guard networks.count == 1, let network = networks.first, !ContainerSpecification.isMode(network) else {
            for alias in aliases { argument("--network-alias=" + alias) }
            return
        }
        let own = network.contains(":") ? network + "," : network + ":alias=" + name + ","
        replaceNetworks([own + aliases.map { "alias=" + $0 }.joined(separator: ",")])
    }
}
