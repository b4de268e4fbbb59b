// SPDX-License-Identifier: Apache-2.0

import Configuration

/// Translates values that docker, podman and compose files have in common.
enum ContainerValues {
    /// The image's name with a registry. If a name has no registry, docker searches Docker Hub, but podman asks for a
    /// registry or refuses the name.
    static func qualified(_ image: String) -> String {
        let parts = image.split(separator: "/", maxSplits: 1)
        guard parts.count > 1 else { return "docker.io/library/" + image }
        let isHost = parts[0].contains(".") || parts[0].contains(":") || parts[0] == "localhost"
        return isHost ? image : "docker.io/" + image
    }

    /// The propagations of mounts, as in mount(8).
    static let propagations: Set = [
        "shared", "slave", "private", "unbindable", "rshared", "rslave", "rprivate", "runbindable",
    ]

    /// A port to publish in podman's syntax, which has an IPv6 address in brackets. Of a range for one port of the
    /// container the first is taken, since podman takes no free one of a range. Nil if docker and podman refuse the port,
    /// because its ranges have different lengths.
    static func port(_ text: String, at place: SourceLine?, _ program: inout ImportedProgram) -> String? {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let ending = parts.count > 1 ? "/" + parts[1] : ""
        var fields = (parts.first ?? "").split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard fields.count > 1, let inside = fields.popLast(), var outside = fields.popLast() else {
            return text
        }
        var address = fields.joined(separator: ":")
        if fields.count > 1, !address.hasPrefix("[") { address = "[\(address)]" }
        let isFirst = outside.contains("-") && !inside.contains("-")
        if isFirst { outside = String(outside.prefix { $0 != "-" }) }
        if let outer = length(outside), let inner = length(inside), outer != inner {
            program.remark(
                "the port \(quoted(text)) is left out: docker and podman refuse ranges of different lengths",
                at: place
            )
            return nil
        }
        let port = (fields.isEmpty ? "" : address + ":") + outside + ":" + inside + ending
        if isFirst {
            program.remark("the port \(quoted(text)) is \(port) here: podman takes no free one of a range", at: place)
        }
        return port
    }

    /// How many ports a port or a range has; nil if the text is neither.
    private static func length(_ text: String) -> Int? {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false).map { UInt16($0).map(Int.init) }
        guard ends.count <= 2, let first = ends.first, let low = first, let last = ends.last, let high = last else {
            return nil
        }
        return high - low + 1
    }

    static let hostProcesses =
        "podman runs no container without a cgroup of its own in the machine's pid namespace (pid = host)"

    /// Sets the arguments of a container. The app is not translated if torpord would replace an argument by a URL.
    static func command(_ words: [String], _ program: inout ImportedProgram) {
        guard !words.isEmpty else { return }
        program["exec"] = .strings(words)
        guard let word = words.first(where: { OpenPlaceholder.isIn([$0]) }) else { return }
        program.cannot("its command has the argument \(word), in whose place Torpor puts a URL: pass it in a script")
    }

    /// Translates a volume, `SOURCE:TARGET[:OPTIONS]` or `TARGET`. Nil if the source begins with `~`, because the
    /// user's home is not known here.
    ///
    /// - Parameter source: converts the source.
    static func volume(_ text: String, source: (String) -> String) -> String? {
        let fields = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard fields.count > 1 else { return text }
        guard !fields[0].hasPrefix("~") else { return nil }
        // Skip options that are the default, or have a meaning only for Docker Desktop.
        let others: Set = ["cached", "delegated", "consistent", "rw"]
        // podman copies nothing into a mounted folder of the machine, and does not accept the option there.
        let isPath = fields[0].hasPrefix("/") || fields[0].hasPrefix(".")
        let options = fields.dropFirst(2).joined(separator: ":").split(separator: ",").map(String.init)
            .filter { !others.contains($0) && !($0 == "nocopy" && isPath) }
        let end = fields[1] + (options.isEmpty ? "" : ":" + options.joined(separator: ","))
        return source(fields[0]) + ":" + end
    }

    /// Translates a value of `--security-opt`; nil if the value is the default.
    static func security(_ text: String, folder: String) -> String? {
        if text.hasPrefix("no-new-privileges") { return text.hasSuffix("false") ? nil : "no-new-privileges" }
        // docker also accepts a colon where podman requires an equals sign.
        guard let sign = text.firstIndex(where: { $0 == ":" || $0 == "=" }) else { return text }
        let value = String(text[text.index(after: sign)...])
        let isFile = text.hasPrefix("seccomp") && value.hasPrefix(".")
        return text[..<sign] + "=" + (isFile ? SourceTree.join(folder, value) : value)
    }

    /// Translates a restart policy: `no`, `always`, `unless-stopped`, `on-failure` or `on-failure:N`. `limit` is a
    /// maximum number of restarts that is given elsewhere.
    static func restart(_ text: String, limit: Int? = nil, _ program: inout ImportedProgram) {
        var rule = text
        var limit = limit
        if rule.hasPrefix("on-failure:") {
            limit = Int(rule.dropFirst(11))
            rule = "on-failure"
        }
        switch rule {
        case "no", "false", "none", "": program["restart"] = .string("never")
        case "on-failure": program["restart"] = .string("on-failure")
        case "always", "unless-stopped": program["restart"] = .string("always")
        default:
            program["restart"] = .string("never")
            program.remark("restart = \(quoted(rule)) is not known, and is taken as no")
        }
        guard program["restart"] != .string("never") else { return }
        // Docker gives up restarting only if the policy contains a number.
        program["restart_backoff"] = .table([
            ("limit", TOMLValue.integer(Int64(min(10_000, max(0, limit ?? 10_000)))))
        ])
    }

    static func memory(_ text: String, _ program: inout ImportedProgram) {
        if let bytes = Amounts.bytes(text), bytes > 0 {
            program["memory_limit"] = .string(Amounts.size(bytes))
        } else if text != "0" {
            program.remark("the memory limit \(quoted(text)) is not a size, and is left out")
        }
    }

    static func processors(_ text: String, _ program: inout ImportedProgram) {
        guard let processors = Double(text), processors > 0, processors < 100_000 else {
            if Double(text) != 0 {
                program.remark("the limit of \(quoted(text)) processors is not a number, and is left out")
            }
            return
        }
        share("cpu_max", .string("\(max(1, Int((processors * 100).rounded())))%"), &program)
    }

    /// Sets a key of `resources` for all states but the suspended one.
    private static func share(_ key: String, _ value: TOMLValue, _ program: inout ImportedProgram) {
        var states = OrderedTable<TOMLValue>()
        if case .table(let members) = program["resources"] { states = members }
        for state in ["active", "inactive", "background"] {
            var profile = OrderedTable<TOMLValue>()
            if case .table(let members) = states[state] { profile = members }
            profile[key] = value
            states[state] = .table(profile)
        }
        program["resources"] = .table(states)
    }

    /// Translates a quota of processor time in a period. Both are numbers of microseconds, or durations.
    ///
    /// - Parameter shown: the names of the two keys as remarks show them.
    static func quota(
        _ quota: String?,
        period: String?,
        shown: (quota: String, period: String),
        _ program: inout ImportedProgram
    ) {
        func microseconds(_ text: String) -> Double? {
            Double(text) ?? Amounts.compose(text).map { $0 * 1_000_000 }
        }
        guard let quota else {
            if period != nil { program.remark("\(shown.period) is left out: it means nothing without \(shown.quota)") }
            return
        }
        // The kernel's own period is 100 ms.
        guard let time = microseconds(quota), let length = microseconds(period ?? "100000"), length > 0 else {
            return program.remark("\(shown.quota) = \(quoted(quota)) is not a time in a period, and is left out")
        }
        // 0 and -1 mean no limit.
        if time > 0 { processors("\(time / length)", &program) }
    }

    /// Translates a weight of docker's. `usual` is that of a container that sets none, and becomes 100, the weight of an
    /// active app.
    static func weight(
        _ key: String,
        _ text: String,
        usual: Int,
        shown: String,
        _ program: inout ImportedProgram
    ) {
        guard let weight = Int(text), (0...1 << 20).contains(weight) else {
            return program.remark("\(shown) = \(quoted(text)) is not a weight, and is left out")
        }
        // 0 means the usual weight.
        guard weight > 0 else { return }
        share(key, .integer(Int64(min(10_000, max(1, (weight * 100 + usual / 2) / usual)))), &program)
    }

    static func processorShares(_ text: String, shown: String, _ program: inout ImportedProgram) {
        weight("cpu_weight", text, usual: 1024, shown: shown, &program)
    }

    static func diskWeight(_ text: String, shown: String, _ program: inout ImportedProgram) {
        weight("io_weight", text, usual: 500, shown: shown, &program)
    }

    /// Translates a reservation of memory, which the kernel takes from the container only if no other has any to give.
    static func reservation(_ text: String, shown: String, _ program: inout ImportedProgram) {
        if let bytes = Amounts.bytes(text), bytes > 0 {
            share("memory_low", .string(Amounts.size(bytes)), &program)
        } else if text != "0" {
            program.remark("\(shown) = \(quoted(text)) is not a size, and is left out")
        }
    }

    static func killScore(_ text: String, shown: String, _ program: inout ImportedProgram) {
        if let score = Int(text), (-1000...1000).contains(score) {
            share("oom_score_adj", .integer(Int64(score)), &program)
        } else {
            program.remark("\(shown) = \(quoted(text)) is not from -1000 to 1000, and is left out")
        }
    }

    /// The devices of graphics cards as podman names them: `all`, a number of cards, or `device=ID,ID`.
    static func graphicsCards(_ text: String) -> [String] {
        let fields = text.filter { $0 != "\"" }
        let names: [String]
        if let number = Int(fields), number > 0, number <= 64 {
            names = (0..<number).map { "\($0)" }
        } else if fields.hasPrefix("device=") {
            names = fields.dropFirst("device=".count).split(separator: ",").map(String.init).filter {
                !$0.contains("=")
            }
        } else {
            names = ["all"]
        }
        return names.map { "nvidia.com/gpu=" + $0 }
    }

    static let cardRemark = "is a device of CDI here: the machine must have nvidia's"

    static func tasks(_ number: Int, _ program: inout ImportedProgram) {
        if number > 0 { program.set(inTable: "limits", "tasks", .integer(Int64(number))) }
    }

    /// - Parameter value: a number, `-1` for no limit, or two of these (soft and hard limit) with a colon between
    ///   them.
    static func limit(_ name: String, _ value: String, _ program: inout ImportedProgram) {
        let bounds = value.split(separator: ":", omittingEmptySubsequences: false)
            .map { $0 == "-1" ? "unlimited" : String($0) }
        let text = bounds.joined(separator: ":")
        program.set(inTable: "limits", name, Int64(text).map(TOMLValue.integer) ?? .string(text))
    }

    /// Adds a remark about mounted paths that do not exist on this machine, because docker creates such paths and
    /// podman does not.
    static func mounts(_ tree: SourceTree, _ result: inout ImportedConfiguration) {
        var missing = OrderedTable<Void>()
        for index in result.programs.indices where result.programs[index].isTranslated {
            guard case .table(let table) = result.programs[index]["container"],
                case .array(let volumes) = table["volumes"]
            else { continue }
            for case .string(let volume) in volumes where volume.hasPrefix("/") && volume.contains(":") {
                let source = String(volume.prefix { $0 != ":" })
                if ["/var/run/docker.sock", "/run/docker.sock"].contains(source) {
                    result.programs[index].remark(
                        "mounts docker's socket, so it manages docker's containers: that of podman is "
                            + "/run/podman/podman.sock (podman-system-service(1))"
                    )
                } else if !tree.exists(source) {
                    missing[source] = ()
                }
            }
        }
        newVolumes(&result)
        let all = missing.keys
        guard !all.isEmpty else { return }
        let paths = all.prefix(10).map(ShellWords.quote).joined(separator: ", ")
        result.remark(
            "Mounted, and not here: \(paths)\(all.count > 10 ? " and \(all.count - 10) more" : ""). podman creates no "
                + "folder that is missing."
        )
    }

    /// Adds a remark that podman does not use docker's volumes, but creates new ones with the same names.
    private static func newVolumes(_ result: inout ImportedConfiguration) {
        var names = OrderedTable<Void>()
        for program in result.programs where program.isTranslated {
            guard case .table(let table) = program["container"], case .array(let volumes) = table["volumes"] else {
                continue
            }
            for case .string(let volume) in volumes where !volume.hasPrefix("/") && volume.contains(":") {
                names[String(volume.prefix { $0 != ":" })] = ()
            }
        }
        guard !names.keys.isEmpty else { return }
        let some = names.keys.prefix(10).joined(separator: ", ")
        result.remark(
            "podman makes these volumes, empty, unless it has them; docker's are others: \(some)"
                + (names.keys.count > 10 ? " and \(names.keys.count - 10) more" : "")
                + ". ‘podman volume import’ fills one from a tar archive."
        )
    }

    /// Makes connections wake suspended containers, whether the connections come from this machine or from another
    /// container.
    static func wake(_ result: inout ImportedConfiguration) {
        let workers = Workers(result)
        for index in result.programs.indices
        where result.programs[index].isTranslated && result.programs[index]["type"] == nil {
            if workers.contains(result.programs[index]) {
                result.programs[index].remark(
                    "seems to listen nowhere, so no connection wakes it: with background_modes = [\"voip\"], data on a "
                        + "connection that it has opened does"
                )
            } else {
                result.programs[index]["wake_on_connect"] = .boolean(true)
                // The ports are the pod's own container's: no connection would launch this one after an eviction.
                if result.programs[index].isInPod { result.programs[index]["evict"] = .string("never") }
            }
        }
        result.remark(
            "Apps are suspended when you say so, or by a policy: write policies = [\"server\"] into [supervisor]."
        )
    }
}
