// SPDX-License-Identifier: Apache-2.0

import Configuration

/// Translates a Quadlet container, or a pod, which is a container whose network, IPC and host name others share.
struct QuadletContainer {
    let service: SystemdService
    let section: String
    private var options: ContainerOptions
    private var leftOut = LeftOutKeys()
    private var image = ""
    /// The variables with which systemd expands command lines. Variables in environment files are not known here.
    private let environment: OrderedTable<String>

    private var unit: SystemdUnit { service.unit }
    private var isPod: Bool { section == "Pod" }

    init(service: SystemdService, folder: String) {
        self.service = service
        section = service.unit.suffix == ".pod" ? "Pod" : "Container"
        options = ContainerOptions(folder: folder, variables: [:])
        var ignored = ImportedProgram("")
        let hasFiles = !service.unit.values("Service", "EnvironmentFile").isEmpty
        environment = hasFiles ? OrderedTable() : service.variables(&ignored)
    }

    private enum Form {
        /// The option's value is the whole value of the key. If the key occurs several times, the last value counts.
        case text
        /// Each value of the key is a value of the option.
        case each
        /// The key's value is a list of words. Each word is a value of the option.
        case words
        /// The key's value is a list of words with quotes and escapes. Each word is a value of the option.
        case quoted
        case flag
    }

    /// Keys that correspond to options of podman-run(1).
    private static let keys: [String: (option: String, form: Form)] = [
        "AddCapability": ("cap-add", .words), "AddHost": ("add-host", .each), "Annotation": ("annotation", .quoted),
        "CgroupsMode": ("cgroups", .text), "DNS": ("dns", .each), "DNSOption": ("dns-option", .each),
        "DNSSearch": ("dns-search", .each), "DropCapability": ("cap-drop", .words), "Environment": ("env", .quoted),
        "EnvironmentFile": ("env-file", .quoted), "EnvironmentHost": ("env-host", .flag),
        "ExposeHostPort": ("expose", .each), "GIDMap": ("gidmap", .words), "GroupAdd": ("group-add", .each),
        "HostName": ("hostname", .text), "HttpProxy": ("http-proxy", .flag), "IP": ("ip", .text), "IP6": ("ip6", .text),
        "Label": ("label", .quoted), "LogDriver": ("log-driver", .text), "LogOpt": ("log-opt", .each),
        "Memory": ("memory", .text), "NetworkAlias": ("network-alias", .each), "PidsLimit": ("pids-limit", .text),
        "PublishPort": ("publish", .each), "Pull": ("pull", .text), "ReadOnly": ("read-only", .flag),
        "ReadOnlyTmpfs": ("read-only-tmpfs", .flag), "Retry": ("retry", .text), "RetryDelay": ("retry-delay", .text),
        "RunInit": ("init", .flag), "Secret": ("secret", .quoted), "ShmSize": ("shm-size", .text),
        "StopSignal": ("stop-signal", .text), "StopTimeout": ("stop-timeout", .text),
        "SubGIDMap": ("subgidname", .text), "SubUIDMap": ("subuidname", .text), "Sysctl": ("sysctl", .words),
        "Timezone": ("tz", .text), "Tmpfs": ("tmpfs", .each), "UIDMap": ("uidmap", .words),
        "Ulimit": ("ulimit", .each), "UserNS": ("userns", .text), "WorkingDir": ("workdir", .text),
        "ContainerName": ("name", .text), "PodName": ("name", .text),
        "HealthCmd": ("health-cmd", .text), "HealthInterval": ("health-interval", .text),
        "HealthLogDestination": ("health-log-destination", .text),
        "HealthMaxLogCount": ("health-max-log-count", .text), "HealthMaxLogSize": ("health-max-log-size", .text),
        "HealthOnFailure": ("health-on-failure", .text), "HealthRetries": ("health-retries", .text),
        "HealthStartPeriod": ("health-start-period", .text), "HealthStartupCmd": ("health-startup-cmd", .text),
        "HealthStartupInterval": ("health-startup-interval", .text),
        "HealthStartupRetries": ("health-startup-retries", .text),
        "HealthStartupSuccess": ("health-startup-success", .text),
        "HealthStartupTimeout": ("health-startup-timeout", .text), "HealthTimeout": ("health-timeout", .text),
    ]
    /// Keys that correspond to values of `--security-opt`, with the prefix of these values.
    private static let security = [
        "AppArmor": "apparmor=", "Mask": "mask=", "SeccompProfile": "seccomp=",
        "SecurityLabelFileType": "label=filetype:",
        "SecurityLabelLevel": "label=level:", "SecurityLabelType": "label=type:", "Unmask": "unmask=",
    ]
    private static let securityFlags = [
        "NoNewPrivileges": "no-new-privileges", "SecurityLabelDisable": "label=disable",
        "SecurityLabelNested": "label=nested",
    ]
    /// Keys that a container in a pod may not have, because only its pod may have them.
    private static let pods: Set = [
        "AddHost", "DNS", "DNSOption", "DNSSearch", "HostName", "IP", "IP6", "Network", "NetworkAlias", "PublishPort",
    ]
    /// Keys that are translated by their own code.
    private static let others: Set = [
        "Image", "Exec", "Entrypoint", "User", "Group", "Volume", "Mount", "Network", "AddDevice", "Notify", "Pod",
        "PodmanArgs", "ServiceName", "StartWithPod", "VolatileTmp", "AutoUpdate",
    ]
    private static let reasons = [
        "AutoUpdate": "‘podman auto-update’ restarts services of systemd: write pull = \"newer\" and restart the app",
        "ContainersConfModule": "it is an option of podman itself: write it into containers.conf(5)",
        "GlobalArgs": "they are options of podman itself: write them into containers.conf(5)",
        "Rootfs": "it has an image",
        "ExitPolicy": "its container only ends when it is stopped",
        "ReloadCmd": "there is no reload: ‘podman exec’ runs it", "ReloadSignal": "‘torpor signal’ sends it",
    ]

    mutating func read(_ files: inout QuadletFiles, into program: inout ImportedProgram) {
        if !isPod {
            guard image(&files, &program) else { return }
        } else {
            image = DockerRun.pause
            program["tags"] = .strings([unit.name])
            options.argument("--ipc=shareable")
        }
        service.readAround(into: &program)
        let pod = isPod ? nil : unit.value(section, "Pod")
        let isMember = pod.map { join($0, &files, &program) } ?? false
        guard program.isTranslated else { return }
        around(&program)
        let notify = unit.value(section, "Notify")
        let isNotify = notify?.isTruth == true
        for key in OrderedTable(unit.entries.filter { $0.section == section }.map { ($0.key, ()) }).keys {
            let place = unit.line(section, key)
            if isMember, Self.pods.contains(key) {
                leftOut.add(key, because: "its pod has the network: write it into \(pod ?? "")", at: place)
            } else if isNotify, key.hasPrefix("Health") {
                leftOut.add(key, because: "it says itself when it is ready (Notify)", at: place)
            } else if let (option, form) = Self.keys[key] {
                take(key, option, form, place, &program)
            } else if let before = Self.security[key] {
                for value in values(key) { add("security-opt", before + value, key, place, &program) }
            } else if let text = Self.securityFlags[key] {
                if value(key)?.isTruth == true { add("security-opt", text, key, place, &program) }
            } else if let reason = Self.reasons[key] {
                leftOut.add(key, because: reason, at: place)
            } else if !Self.others.contains(key) {
                leftOut.add(key, because: "it is not translated", at: place)
            }
        }
        mounts(&files, &program)
        if !isMember { networks(&files, &program) }
        user(&program)
        if isNotify { program["ready"] = .string("notify") }
        let command = words("Exec", &program)
        more(&program)
        if isPod {
            program.remark(
                "its own container only waits, in the image \(image): an image with another program that waits will do"
            )
        }
        program.remark(leftOut)
        guard program.isTranslated else { return }
        let before = program["launch_deadline"]
        options.finish(image: image, command: command, &program)
        // systemd waits for the health check at most for TimeoutStartSec, so keep the deadline that comes from it.
        if notify?.lowercased() == "healthy", unit.value("Service", "TimeoutStartSec") != nil {
            program["launch_deadline"] = before
        }
        service.template(&program)
    }

    // MARK: Values

    private func value(_ key: String) -> String? { unit.value(section, key).map(service.text.expanded) }
    private func values(_ key: String) -> [String] { unit.values(section, key).map(service.text.expanded) }

    /// The words of all values of a key.
    private func words(_ key: String, _ program: inout ImportedProgram) -> [String] {
        var words: [String] = []
        for value in key == "Exec" ? unit.value(section, key).map({ [$0] }) ?? [] : unit.values(section, key) {
            guard let found = SystemdText.words(value) else {
                program.remark("\(key)=\(value) cannot be read, and is left out", at: unit.line(section, key))
                continue
            }
            words += found.flatMap { dollars(service.text.expanded($0), key, &program) }
        }
        return words
    }

    /// Expands variables in a word. systemd expands them with the environment of the service, because it runs podman's
    /// whole command line.
    private func dollars(_ word: String, _ key: String, _ program: inout ImportedProgram) -> [String] {
        let marked = SystemdCommand.marked(word)
        if let words = Late.filled(marked, environment) { return words }
        program.cannot(
            "\(key) has \(quoted(word)), in which systemd expands a variable that [Service] does not set: write its "
                + "value, or $$ for a dollar",
            at: unit.line(section, key)
        )
        return []
    }

    private mutating func add(
        _ option: String,
        _ value: String,
        _ key: String,
        _ place: SourceLine?,
        _ program: inout ImportedProgram
    ) {
        options.add(option, value, shown: key, at: place, &program)
    }

    private mutating func take(
        _ key: String,
        _ option: String,
        _ form: Form,
        _ place: SourceLine?,
        _ program: inout ImportedProgram
    ) {
        switch form {
        case .text where key == "HealthCmd":
            if let value = value(key) {
                add(option, dollars(value, key, &program).joined(separator: " "), key, place, &program)
            }
        case .text: if let value = value(key) { add(option, value, key, place, &program) }
        case .each: for value in values(key) { add(option, value, key, place, &program) }
        case .words:
            for word in unit.lists(section, key).map(service.text.expanded) {
                // podman accepts capabilities in lower and upper case.
                add(option, option.hasPrefix("cap-") ? word.uppercased() : word, key, place, &program)
            }
        case .quoted: for word in words(key, &program) { add(option, word, key, place, &program) }
        case .flag: if let value = value(key) { add(option, value.isTruth ? "true" : "false", key, place, &program) }
        }
    }

    // MARK: What is not an option of its own

    private mutating func image(_ files: inout QuadletFiles, _ program: inout ImportedProgram) -> Bool {
        guard let written = value("Image") else {
            program.cannot(
                value("Rootfs") == nil ? "it has no Image" : "it has a root file system and no image (Rootfs)"
            )
            return false
        }
        guard let found = files.image(written, &program) else { return false }
        image = found.name
        if !found.isBuilt, !image.prefix(while: { $0 != "/" }).contains(where: { ".:".contains($0) }),
            !image.hasPrefix("localhost/")
        {
            program.remark(
                "its image \(quoted(image)) names no registry: podman asks those of registries.conf(5), or refuses it",
                at: unit.line(section, "Image")
            )
        }
        if found.isBuilt { options.add("pull", "never", shown: "Pull", at: nil, &program) }
        return true
    }

    /// Makes the container join its pod. Returns false if that is not possible.
    private func join(_ pod: String, _ files: inout QuadletFiles, _ program: inout ImportedProgram) -> Bool {
        guard let other = files.unit(pod), other.suffix == ".pod" else {
            program.cannot("it is in the pod \(quoted(pod)), which is not here", at: unit.line(section, "Pod"))
            return false
        }
        if let key = ["UserNS", "UIDMap", "GIDMap", "SubUIDMap", "SubGIDMap"].first(where: {
            other.value("Pod", $0) != nil
        }) {
            program.cannot("its pod has a user namespace of its own (\(key)), which it cannot join here")
            return false
        }
        program.joined = other.title
        program.isInPod = true
        program.requires.append(other.title)
        program["tags"] = .strings([other.name])
        if value("StartWithPod")?.isTruth ?? true, !other.lists("Install", "WantedBy").isEmpty {
            program["launch"] = nil
        }
        return true
    }

    /// Translates the keys of the service that runs the container. Some keys have another meaning than in other
    /// services, because the service runs podman and podman runs the program.
    private func around(_ program: inout ImportedProgram) {
        if let type = unit.value("Service", "Type"), type == "oneshot" {
            program["type"] = .string("oneshot")
            program["launch_deadline"] = .string("none")
        }
        for key in ["ready", "kill_mode", "notify_access", "stop_signal"] { program.keys[key] = nil }
        if unit.value("Service", "TimeoutStartSec") != nil || unit.value("Service", "TimeoutSec") != nil,
            program["type"] == nil
        {
            program["launch_deadline"] = service.deadline(
                unit.value("Service", "TimeoutStartSec") ?? unit.value("Service", "TimeoutSec") ?? "",
                "TimeoutStartSec",
                &program
            )
        }
        // podman kills a container that has not ended after 10 s. systemd's own deadline is later, so it does not
        // matter.
        program["grace"] = .string("10s")
        if isPod, unit.value("Service", "Restart") == nil { program["restart"] = .string("on-failure") }
        let podmans = [
            "Environment", "EnvironmentFile", "ExecStart", "ExecStop", "ExecReload", "KillMode", "KillSignal",
            "NotifyAccess", "WorkingDirectory", "SendSIGKILL", "TimeoutStopSec",
        ]
        for key in podmans where unit.value("Service", key) != nil {
            program.remark(
                "\(key) of [Service] is left out: it concerns podman, not what runs in the container",
                at: unit.line("Service", key)
            )
        }
    }

    private mutating func mounts(_ files: inout QuadletFiles, _ program: inout ImportedProgram) {
        var volumes = values("Volume").map { ($0, "Volume", unit.line(section, "Volume")) }
        if let pod = unit.value(section, "Pod"), !isPod, let other = files.unit(pod) {
            volumes += other.values("Pod", "Volume").map { (service.text.expanded($0), "Volume", nil) }
        }
        // A pod's own container has no volumes; only the other containers of the pod have volumes.
        if !isPod {
            for (volume, key, place) in volumes {
                let parts = volume.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(
                    String.init
                )
                let source = parts.count > 1 ? files.resource(parts[0], ".volume", &program) + ":" : ""
                add("volume", source + (parts.last ?? ""), key, place, &program)
            }
        }
        for mount in words("Mount", &program) {
            var fields = mount.split(separator: ",").map(String.init)
            for (index, field) in fields.enumerated() {
                for name in ["source=", "src="] where field.hasPrefix(name) {
                    fields[index] = name + files.resource(String(field.dropFirst(name.count)), ".volume", &program)
                }
            }
            add("mount", fields.joined(separator: ","), "Mount", unit.line(section, "Mount"), &program)
        }
        if value("VolatileTmp")?.isTruth == true {
            add("tmpfs", "/tmp:rw,size=512M,mode=1777", "VolatileTmp", nil, &program)
        }
        for device in unit.lists(section, "AddDevice").map(service.text.expanded) {
            if device.hasPrefix("-") {
                program.remark(
                    "the device \(device.dropFirst()) may be missing in Quadlet (AddDevice), but must be there here",
                    at: unit.line(section, "AddDevice")
                )
            }
            add("device", device.hasPrefix("-") ? String(device.dropFirst()) : device, "AddDevice", nil, &program)
        }
    }

    private mutating func networks(_ files: inout QuadletFiles, _ program: inout ImportedProgram) {
        for network in values("Network") where !network.isEmpty {
            let parts = network.split(separator: ":", maxSplits: 1).map(String.init)
            let name = parts.first ?? ""
            if name.hasSuffix(".container") {
                program.joined = String(name.dropLast(".container".count))
                program.requires.append(String(name.dropLast(".container".count)))
                continue
            }
            let resource = files.resource(name, ".network", &program)
            add("network", ([resource] + parts.dropFirst()).joined(separator: ":"), "Network", nil, &program)
        }
        // Others find the container by the name that Quadlet gives it, unless the unit names it.
        guard value(isPod ? "PodName" : "ContainerName") == nil, unit.instance == nil,
            options.networks.contains(where: { !ContainerSpecification.isMode($0) })
        else { return }
        add("network-alias", "systemd-" + unit.name, "Network", nil, &program)
    }

    private mutating func user(_ program: inout ImportedProgram) {
        let place = unit.line(section, "User")
        if let user = value("User") {
            add("user", user + (value("Group").map { ":" + $0 } ?? ""), "User", place, &program)
        } else if value("Group") != nil, !isPod {
            leftOut.add("Group", because: "it counts only with User", at: unit.line(section, "Group"))
        }
        if let entry = unit.entries.last(where: { $0.section == section && $0.key == "Entrypoint" }) {
            add("entrypoint", service.text.expanded(entry.value), "Entrypoint", entry.line, &program)
        }
    }

    /// Adds options that the unit passes to podman unchanged (PodmanArgs).
    private mutating func more(_ program: inout ImportedProgram) {
        let words = words("PodmanArgs", &program)
        let place = unit.line(section, "PodmanArgs")
        guard !words.isEmpty else { return }
        guard !isPod else {
            let option = "--infra-image="
            for word in words where word.hasPrefix(option) { image = String(word.dropFirst(option.count)) }
            guard !words.allSatisfy({ $0.hasPrefix(option) }) else { return }
            return leftOut.add("PodmanArgs", because: "they are options of ‘podman pod create’", at: place)
        }
        let more = PodmanOptions(words)
        options.add(more, at: place, &program)
        if options.pod != nil { program.cannot("PodmanArgs has --pod: write Pod instead", at: place) }
        if let problem = more.problem {
            program.remark("PodmanArgs: \(problem.sentence), and is left out with what follows", at: place)
        } else if let word = more.rest.first {
            program.remark("PodmanArgs: \(quoted(word)) is no option, and is left out with what follows", at: place)
        }
    }
}
