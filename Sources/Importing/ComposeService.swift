// SPDX-License-Identifier: Apache-2.0

import WireText

/// Translates one service of a compose file.
struct ComposeService {
    let node: DataNode
    let folder: String
    let variables: [String: String]
    let name: String
    /// The project to which the services' containers belong; nil if services become programs on this machine.
    var project: ComposeProject?
    var profiles = ComposeProfiles([], [:])

    init(node: DataNode, folder: String, variables: [String: String], program: ImportedProgram) {
        self.node = node
        self.folder = folder
        self.variables = variables
        name = program.name
    }

    private static let container = "a program has no container"
    private static let machine = "its files, devices and processes are the machine's"
    private static let network = "its network is the machine's, where services are at localhost"
    private static let rights = "it has the rights of its user"
    private static let shares = "resources sets its share of the machine, as in resources.active.cpu_weight"
    /// Keys that have a meaning only for a container, with the reason why they are left out for a program on this
    /// machine.
    private static let containers: [String: String] = [
        "annotations": container, "attach": container, "build": container, "container_name": container,
        "credential_spec": container, "develop": container, "domainname": container, "hostname": container,
        "image": container, "init": container, "isolation": container, "label_file": container, "platform": container,
        "provider": container, "pull_policy": container, "runtime": container, "models": container, "uts": container,
        "use_api_socket": container, "stdin_open": container, "driver_opts": container,
        "volumes": machine, "volumes_from": machine, "tmpfs": machine, "devices": machine, "shm_size": machine,
        "ipc": machine, "pid": machine, "read_only": machine, "storage_opt": machine, "gpus": machine,
        "device_cgroup_rules": machine, "cgroup": machine, "cgroup_parent": machine, "userns_mode": machine,
        "sysctls": "set them on the machine",
        "networks": network, "network_mode": network, "expose": network, "links": network, "external_links": network,
        "dns": network, "dns_opt": network, "dns_search": network, "mac_address": network,
        "extra_hosts": "write them into /etc/hosts",
        "cap_add": rights, "cap_drop": rights, "privileged": rights, "security_opt": rights,
        "logging": "its output is in the log directory: ‘torpor logs’ shows it",
        "tty": "it runs without a terminal",
        "secrets": "give it paths on the machine", "configs": "give it paths on the machine",
        "cpu_count": shares, "cpu_percent": shares, "cpu_rt_period": shares, "cpu_rt_runtime": shares,
        "cpuset": PodmanOption.processors, "oom_kill_disable": shares,
        "memswap_limit": "swap is the machine's", "mem_swappiness": "swap is the machine's",
        "post_start": "before_start runs commands for it, before it starts",
        "pre_stop": "after_stop runs commands for it, after it has ended",
    ]
    private static let known: Set = [
        "command", "entrypoint", "environment", "env_file", "working_dir", "user", "depends_on", "restart",
        "stop_signal", "stop_grace_period", "healthcheck", "mem_limit", "deploy", "labels", "profiles", "scale",
        "ports", "group_add", "ulimits", "pids_limit", "cpus", "extends", "mem_reservation", "cpu_shares",
        "cpu_period", "cpu_quota", "oom_score_adj", "blkio_config",
    ]

    func read(into program: inout ImportedProgram) {
        if let project { readContainer(project, into: &program) } else { readProgram(into: &program) }
    }

    private func readContainer(_ project: ComposeProject, into program: inout ImportedProgram) {
        environment(&program)
        order(&program)
        restart(&program)
        limits(&program)
        profiles(&program)
        var container = ComposeContainer(
            node: node,
            folder: folder,
            name: name,
            project: project,
            variables: variables
        )
        container.read(into: &program)
        ComposeHealth(node: node["healthcheck"], folder: folder).read(into: &program)
        var leftOut = LeftOutKeys()
        let known = Self.known.union(ComposeContainer.known)
        for (key, value) in node.members ?? [] where !known.contains(key) && !key.hasPrefix("x-") {
            if value.isNull || value.list?.isEmpty == true { continue }
            let reason =
                switch key {
                case "cpuset": PodmanOption.processors
                case _ where Self.containers[key] == nil: "it is not a key of a compose file"
                default: "podman-run(1) may have an option for it, which goes into args"
                }
            leftOut.add(key, because: reason, at: value.place)
        }
        program.remark(leftOut)
    }

    private func readProgram(into program: inout ImportedProgram) {
        guard let words = command(&program) else { return }
        program["exec"] = .strings(words)
        environment(&program)
        place(&program)
        order(&program)
        restart(&program)
        ComposeHealth(node: node["healthcheck"], folder: folder).read(into: &program)
        limits(&program)
        tags(&program)
        if let ports = node["ports"]?.list, !ports.isEmpty {
            let texts = ports.map {
                $0.text ?? [$0["published"]?.text, $0["target"]?.text].compactMap { $0 }.joined(separator: ":")
            }
            program.remark(
                "ports are not translated: it listens on its own, \(texts.joined(separator: ", ")) (container's last)"
            )
        }
        var leftOut = LeftOutKeys()
        for (key, value) in node.members ?? [] where !Self.known.contains(key) && !key.hasPrefix("x-") {
            if value.isNull || value.list?.isEmpty == true { continue }
            leftOut.add(
                key,
                because: Self.containers[key] ?? "it is not a key of a compose file",
                at: value.place
            )
        }
        program.remark(leftOut)
    }

    // MARK: The program

    /// The words of `command` or `entrypoint`, and whether the key is set. The words are nil if a quote is not closed.
    private func words(_ key: String) -> (words: [String]?, isThere: Bool) {
        guard let node = node[key], !node.isNull else { return (nil, false) }
        if let list = node.list { return (list.compactMap(\.text), true) }
        return (node.text.flatMap(ShellWords.split), true)
    }

    private func command(_ program: inout ImportedProgram) -> [String]? {
        let entry = words("entrypoint")
        let command = words("command")
        let source = node["image"]?.text.map { "the image \($0)" } ?? "the image that is built"
        if entry.isThere && entry.words == nil || command.isThere && command.words == nil {
            program.cannot("its command has a quote that is not closed")
            return nil
        }
        let all = (entry.words ?? []) + (command.words ?? [])
        guard let first = all.first else {
            program.cannot("it has no command: only \(source) says what runs")
            return nil
        }
        if first.hasPrefix("-"), !entry.isThere, let image = node["image"]?.text,
            let name = ComposeImages.program(of: image)
        {
            program.remark(
                "runs \(name), the program of \(source), with these options, without the image's own steps before it"
            )
            return [name] + all
        }
        guard !first.isEmpty, !first.hasPrefix("-") else {
            program.cannot(
                "its command is only arguments (\(quoted(all.joined(separator: " ")))) for the program of \(source)"
            )
            return nil
        }
        if entry.words?.isEmpty ?? true, !entry.isThere {
            program.remark("runs its command directly, without an entry point that \(source) may have")
        }
        return all
    }

    private func environment(_ program: inout ImportedProgram) {
        for node in node["env_file"].map({ $0.list ?? [$0] }) ?? [] {
            guard let path = node.text ?? node["path"]?.text else { continue }
            let isOptional = node["required"]?.flag == false
            if let format = node["format"]?.text {
                program.remark("env_file.format = \(quoted(format)) is left out: it is read as torpor.toml(5) says")
            }
            program.append(to: "environment_file", .string((isOptional ? "-" : "") + SourceTree.join(folder, path)))
        }
        guard let node = node["environment"] else { return }
        var missing: [String] = []
        for (name, value) in node.members ?? [] {
            // A variable without a value gets its value from the environment of the caller, in compose and in Torpor.
            if let text = value.text ?? (value.isNull ? variables[name] : nil) {
                program.setVariable(name, text)
            } else if value.isNull {
                missing.append(name)
            }
        }
        for element in node.list ?? [] {
            guard let text = element.text else { continue }
            if let equals = text.firstIndex(of: "=") {
                program.setVariable(String(text[..<equals]), String(text[text.index(after: equals)...]))
            } else if let value = variables[text] {
                program.setVariable(text, value)
            } else {
                missing.append(text)
            }
        }
        // Add this remark only for containers: a program on this machine inherits such variables from the supervisor.
        if project != nil, !missing.isEmpty {
            let verb = missing.count > 1 ? "have no value here, and are" : "has no value here, and is"
            program.remark("\(LeftOutKeys.list(missing)) of environment \(verb) left out", at: node.place)
        }
    }

    private func place(_ program: inout ImportedProgram) {
        if let directory = node["working_dir"]?.text {
            program["directory"] = .string(SourceTree.join("/", directory))
        } else {
            program.remark(
                "has no working_dir, and the image's is not known: it runs in the home of its user, or else in /"
            )
        }
        if let user = node["user"]?.text {
            let parts = user.split(separator: ":", maxSplits: 1).map(String.init)
            if let first = parts.first { program["user"] = .string(first) }
            if parts.count > 1 { program["group"] = .string(parts[1]) }
        }
        let groups = (node["group_add"]?.list ?? []).compactMap(\.text)
        if !groups.isEmpty { program["supplementary_groups"] = .strings(groups) }
    }

    // MARK: Start and end

    private func order(_ program: inout ImportedProgram) {
        guard let node = node["depends_on"] else { return }
        program.requires = (node.list ?? []).compactMap(\.text)
        for (name, rule) in node.members ?? [] {
            if rule["required"]?.flag == false {
                program.after.append(name)
            } else {
                program.requires.append(name)
            }
            if rule["condition"]?.text == "service_completed_successfully" { program.completed.append(name) }
            if rule["restart"]?.flag == true {
                program.remark("is not restarted when \(quoted(name)) is", at: rule.place)
            }
        }
    }

    private func restart(_ program: inout ImportedProgram) {
        let swarm = node["deploy"]?["restart_policy"]
        var rule = node["restart"]?.text ?? "no"
        var limit: Int?
        if let swarm, node["restart"] == nil {
            rule = ["none": "no", "on-failure": "on-failure"][swarm["condition"]?.text ?? "any"] ?? "always"
            limit = swarm["max_attempts"]?.integer
        }
        ContainerValues.restart(rule, limit: limit, &program)
        if case .table(var backoff) = program["restart_backoff"] {
            for (key, name) in [("delay", "initial"), ("window", "window")] {
                guard node["restart"] == nil, let text = swarm?[key]?.text else { continue }
                if let time = Amounts.compose(text).flatMap(Amounts.duration(seconds:)) {
                    backoff[name] = .string(time)
                    if name == "initial" { backoff["factor"] = .integer(1) }
                } else {
                    program.remark("deploy.restart_policy.\(key) = \(quoted(text)) is not a duration, and is left out")
                }
            }
            program["restart_backoff"] = .table(backoff)
        }
        if let signal = node["stop_signal"]?.text, Amounts.signal(signal) != "SIGTERM" {
            program["stop_signal"] = .string(Amounts.signal(signal))
        }
        if project == nil { program["kill_mode"] = .string("main") }
        var grace = 10.0
        if let text = node["stop_grace_period"]?.text {
            if let seconds = Amounts.compose(text) {
                grace = seconds
            } else {
                program.remark("stop_grace_period = \(quoted(text)) is not a duration, and is taken as 10s")
            }
        }
        program["grace"] = Amounts.duration(seconds: grace).map(TOMLValue.string)
    }

    // MARK: Limits

    private func limits(_ program: inout ImportedProgram) {
        let deploy = node["deploy"]
        let limits = deploy?["resources"]?["limits"]
        if let text = node["mem_limit"]?.text ?? limits?["memory"]?.text {
            ContainerValues.memory(text, &program)
        }
        if let text = node["cpus"]?.text ?? limits?["cpus"]?.text { ContainerValues.processors(text, &program) }
        if let number = node["pids_limit"]?.integer ?? limits?["pids"]?.integer {
            ContainerValues.tasks(number, &program)
        }
        shares(deploy?["resources"]?["reservations"], &program)
        for (name, rule) in node["ulimits"]?.members ?? [] {
            if let text = rule.text {
                ContainerValues.limit(name, text, &program)
            } else if let soft = rule["soft"]?.text, let hard = rule["hard"]?.text {
                ContainerValues.limit(name, soft + ":" + hard, &program)
            }
        }
        if let number = node["scale"]?.integer ?? deploy?["replicas"]?.integer, number != 1 {
            if (2...1000).contains(number) {
                program["instances"] = .integer(Int64(number))
            } else if number == 0 {
                program["launch"] = .string("on-demand")
            } else {
                program.remark("\(number) replicas are more than the thousand that an app may have, and are left out")
            }
        }
        for (key, value) in deploy?.members ?? [] where !["resources", "replicas", "restart_policy"].contains(key) {
            program.remark("deploy.\(key) is not translated", at: value.place)
        }
        for (key, value) in deploy?["resources"]?.members ?? [] where !["limits", "reservations"].contains(key) {
            program.remark("deploy.resources.\(key) is not translated", at: value.place)
        }
    }

    /// Translates weights, reservations and the quota of processor time.
    private func shares(_ reservations: DataNode?, _ program: inout ImportedProgram) {
        if let text = node["mem_reservation"]?.text ?? reservations?["memory"]?.text {
            ContainerValues.reservation(text, shown: "mem_reservation", &program)
        }
        for (key, value) in reservations?.members ?? []
        where key != "memory" && (key != "devices" || project == nil) {
            program.remark("deploy.resources.reservations.\(key) is not translated", at: value.place)
        }
        if let text = node["cpu_shares"]?.text {
            ContainerValues.processorShares(text, shown: "cpu_shares", &program)
        }
        ContainerValues.quota(
            node["cpu_quota"]?.text,
            period: node["cpu_period"]?.text,
            shown: ("cpu_quota", "cpu_period"),
            &program
        )
        if let text = node["oom_score_adj"]?.text {
            ContainerValues.killScore(text, shown: "oom_score_adj", &program)
        }
        for (key, value) in node["blkio_config"]?.members ?? [] {
            if key == "weight", let text = value.text {
                ContainerValues.diskWeight(text, shown: "blkio_config.weight", &program)
            } else {
                program.remark(
                    "blkio_config.\(key) is not translated: the app's cgroup has no such limit",
                    at: value.place
                )
            }
        }
    }

    /// Translates `profiles`. compose starts the service only if one of its profiles is active, so if none is, torpord
    /// does not launch the app at its start.
    @discardableResult
    private func profiles(_ program: inout ImportedProgram) -> [String] {
        let tags = (node["profiles"]?.list ?? []).compactMap(\.text).filter { !$0.isEmpty }
        if !tags.isEmpty {
            program["tags"] = .strings(tags)
        }
        if !tags.isEmpty, !profiles.has(tags) {
            program["launch"] = .string("on-demand")
            program.remark(
                "belongs to the profile \(tags.joined(separator: ", ")): start it with ‘torpor start tag:\(tags[0])’"
            )
        }
        return tags
    }

    private func tags(_ program: inout ImportedProgram) {
        var tags = profiles(&program)
        let labels =
            (node["labels"]?.members ?? []).map { "\($0.key)=\($0.value.text ?? "")" }
            + (node["labels"]?.list ?? []).compactMap(\.text)
        tags += labels.map { $0.hasSuffix("=") ? String($0.dropLast()) : $0 }
        tags = tags.filter { !$0.isEmpty }
        if !tags.isEmpty { program["tags"] = .strings(tags) }
    }
}

/// The active profiles. compose starts the services of active profiles in addition to those without profiles.
struct ComposeProfiles {
    private let names: Set<WireText>

    /// Uses the profiles of the command-line option or, if there are none, those of the variable `COMPOSE_PROFILES`.
    init(_ named: [String], _ variables: [String: String]) {
        let usual = (variables["COMPOSE_PROFILES"] ?? "").split(separator: ",").map { $0.trimmed }
        names = Set((named.isEmpty ? usual : named).map(WireText.init))
    }

    func has(_ profiles: [String]) -> Bool {
        names.contains(WireText("*")) || profiles.contains { names.contains(WireText($0)) }
    }
}
