// SPDX-License-Identifier: Apache-2.0

import Configuration

/// How an option of docker-run(1) or podman-run(1) is translated.
struct PodmanOption {
    enum Kind {
        /// Each value of the option is added to the list of this name in `container`.
        case list(String)
        /// The option's value becomes the text of this name in `container`.
        case text(String)
        /// The option has no key in `container`, and is passed to podman unchanged.
        case argument
        /// The option has no effect on an app, and is ignored.
        case silent
        /// The option is left out, for this reason.
        case dropped(String)
        /// The option has its own code in ``ContainerOptions``.
        case special
    }

    var kind: Kind
    /// Whether the option takes a value. If not, it is a boolean.
    var hasValue: Bool

    static let letters: [Character: String] = [
        "a": "attach", "c": "cpu-shares", "d": "detach", "e": "env", "h": "hostname", "i": "interactive", "l": "label",
        "m": "memory", "p": "publish", "P": "publish-all", "q": "quiet", "t": "tty", "u": "user", "v": "volume",
        "w": "workdir",
    ]

    /// Other names of options, each with the name that is used here instead.
    static let aliases = ["net": "network", "net-alias": "network-alias", "dns-opt": "dns-option"]

    static let all: [String: PodmanOption] = {
        var all: [String: PodmanOption] = [:]
        for name in arguments { all[name] = PodmanOption(kind: .argument, hasValue: true) }
        for name in flags { all[name] = PodmanOption(kind: .argument, hasValue: false) }
        for name in specials { all[name] = PodmanOption(kind: .special, hasValue: true) }
        for name in specialFlags { all[name] = PodmanOption(kind: .special, hasValue: false) }
        for name in silent { all[name] = PodmanOption(kind: .silent, hasValue: false) }
        for (name, key) in lists { all[name] = PodmanOption(kind: .list(key), hasValue: true) }
        for (name, key) in texts { all[name] = PodmanOption(kind: .text(key), hasValue: true) }
        for (reason, names, hasValue) in dropped {
            for name in names { all[name] = PodmanOption(kind: .dropped(reason), hasValue: hasValue) }
        }
        return all
    }()

    private static let arguments = [
        "add-host", "annotation", "arch", "cgroupns", "chrootdirs", "dns", "dns-option", "dns-search", "env-merge",
        "expose", "gidmap", "group-add", "group-entry", "hosts-file", "hostuser", "image-volume", "init-path", "ip",
        "ip6", "ipc",
        "label-file", "mac-address", "os", "passwd-entry", "personality", "pid", "platform", "seccomp-policy",
        "shm-size-systemd", "subgidname", "subuidname", "sysctl", "systemd", "tz", "uidmap", "umask", "unsetenv",
        "userns", "uts", "variant",
    ]
    private static let flags = [
        "env-host", "http-proxy", "init", "no-hosts", "no-hostname", "passwd", "privileged", "publish-all",
        "read-only-tmpfs", "unsetenv-all",
    ]
    private static let specials = [
        "blkio-weight", "cpu-period", "cpu-quota", "cpu-shares", "cpus", "entrypoint", "env", "env-file", "gpus",
        "health-cmd", "health-interval", "health-on-failure", "health-retries", "health-start-period", "health-timeout",
        "label", "link", "memory", "memory-reservation", "mount", "network", "network-alias", "oom-score-adj",
        "pids-limit", "pod", "pod-id-file", "publish", "pull", "restart", "security-opt", "shm-size", "stop-signal",
        "stop-timeout", "ulimit", "volume", "volumes-from",
    ]
    private static let specialFlags = ["no-healthcheck", "read-only", "rootfs"]
    private static let silent = ["detach", "quiet", "replace", "rm", "sig-proxy"]
    private static let lists = [
        "cap-add": "cap_add", "cap-drop": "cap_drop", "device": "devices", "secret": "secrets", "tmpfs": "tmpfs",
    ]
    private static let texts = ["hostname": "hostname", "name": "name", "user": "user", "workdir": "directory"]

    private static let shares = "resources sets its share of the machine, as in resources.active.cpu_weight"
    /// podman sets them in a cgroup that it makes.
    static let processors =
        "Torpor has no key for it: start taskset(1) in the container, or write AllowedCPUs= for torpord's service"
    private static let disks = "the app's cgroup has no such limit"
    private static let log = "its output is in the log directory, and ‘torpor logs’ shows it"
    private static let terminal = "it has neither a terminal nor standard input"
    private static let follow = "Torpor follows the container itself"
    private static let registry = "the image is pulled with the credentials of ‘podman login’ of its user"
    private static let windows = "it is for Windows"
    private static let health = "the health check only decides when it is ready"
    private static let dropped: [(reason: String, names: [String], hasValue: Bool)] = [
        (
            shares,
            ["cpu-rt-period", "cpu-rt-runtime", "memory-swap", "memory-swappiness", "kernel-memory"], true
        ),
        (processors, ["cpuset-cpus", "cpuset-mems"], true),
        (shares, ["oom-kill-disable"], false),
        (
            disks,
            [
                "blkio-weight-device", "device-cgroup-rule", "device-read-bps", "device-read-iops", "device-write-bps",
                "device-write-iops", "cgroup-conf", "rdt-class",
            ], true
        ),
        (log, ["log-driver", "log-opt"], true),
        (terminal, ["attach", "detach-keys"], true),
        (terminal, ["interactive", "tty"], false),
        (
            follow,
            [
                "cgroup-parent", "cgroups", "cidfile", "conmon-pidfile", "pidfile", "preserve-fd", "preserve-fds",
                "sdnotify", "timeout",
            ], true
        ),
        (registry, ["authfile", "cert-dir", "creds", "decryption-key", "retry", "retry-delay"], true),
        (registry, ["tls-verify", "disable-content-trust"], false),
        (
            windows, ["cpu-count", "cpu-percent", "credential-spec", "io-maxbandwidth", "io-maxiops", "isolation"], true
        ),
        (
            health,
            [
                "health-start-interval", "health-startup-cmd", "health-startup-interval",
                "health-startup-retries", "health-startup-success", "health-startup-timeout", "health-log-destination",
                "health-max-log-count", "health-max-log-size",
            ], true
        ),
        ("podman has no such option", ["domainname", "link-local-ip", "storage-opt", "volume-driver"], true),
        ("podman has no such option", ["use-api-socket"], false),
        ("‘podman --runtime’ is an option of podman itself: write it into containers.conf(5)", ["runtime"], true),
        ("write requires of the app", ["requires"], true),
        ("the image is kept", ["rmi"], false),
        ("it runs nothing", ["help"], false),
    ]
}

/// Parses the options at the beginning of a list of words.
struct PodmanOptions {
    struct Given {
        var name: String
        var option: PodmanOption
        /// The option's value; "true" or "false" for a boolean.
        var value: String
        /// The index of the option among the words.
        var place: Int
    }

    private(set) var given: [Given] = []
    private(set) var rest: ArraySlice<String> = []
    /// The index of the first word after the options.
    private(set) var end = 0
    /// The first word that could not be parsed as an option, with the reason; nil if there is none.
    private(set) var problem: (place: Int, sentence: String)?
    /// Options that the command has besides those of `podman run`, and options with one letter.
    private let others: [String: PodmanOption]
    private let letters: [Character: String]

    init(_ words: [String], others: [String: PodmanOption] = [:], letters: [Character: String] = [:]) {
        self.others = others
        self.letters = letters
        var index = 0
        while index < words.count, problem == nil {
            let word = words[index]
            guard word.hasPrefix("-"), word != "-" else { break }
            index += 1
            if word == "--" { break }
            if word.hasPrefix("--") { long(word, words, &index) } else { short(word, words, &index) }
        }
        end = index
        rest = words[min(index, words.count)...]
    }

    /// Forgets the options of these names.
    mutating func drop(_ names: Set<String>) { given.removeAll { names.contains($0.name) } }

    private mutating func long(_ word: String, _ words: [String], _ index: inout Int) {
        let place = index - 1
        let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            .map(String.init)
        let written = parts.first ?? ""
        let name = PodmanOption.aliases[written] ?? written
        guard let option = others[name] ?? PodmanOption.all[name] else {
            let hint = Nearest.name(to: written, among: PodmanOption.all.keys.sorted()).map {
                ", did you mean --\($0)?"
            }
            let command = others.isEmpty ? "docker run or podman run" : "podman pod create"
            problem = (place, "\(quoted("--" + written)) is no option of \(command)\(hint ?? "")")
            return
        }
        take(name, option, parts.count > 1 ? parts[1] : nil, place, words, &index)
    }

    /// Parses several one-letter options in one word (`-it`). The last of them may have a value.
    private mutating func short(_ word: String, _ words: [String], _ index: inout Int) {
        let place = index - 1
        var rest = word.dropFirst()
        while let letter = rest.popFirst() {
            guard let name = letters[letter] ?? PodmanOption.letters[letter], let option = PodmanOption.all[name] else {
                problem = (place, "\(quoted("-" + String(letter))) is no option of docker run or podman run")
                return
            }
            guard option.hasValue else {
                if rest.first == "=" {
                    take(name, option, String(rest.dropFirst()), place, words, &index)
                    return
                }
                take(name, option, nil, place, words, &index)
                continue
            }
            if rest.first == "=" { rest = rest.dropFirst() }
            take(name, option, rest.isEmpty ? nil : String(rest), place, words, &index)
            return
        }
    }

    private mutating func take(
        _ name: String,
        _ option: PodmanOption,
        _ value: String?,
        _ place: Int,
        _ words: [String],
        _ index: inout Int
    ) {
        guard option.hasValue else {
            guard let isOn = Amounts.truth(value ?? "true") else {
                problem = (place, "--\(name)=\(value ?? "") is neither true nor false")
                return
            }
            given.append(Given(name: name, option: option, value: isOn ? "true" : "false", place: place))
            return
        }
        var value = value
        if value == nil, index < words.count {
            value = words[index]
            index += 1
        }
        guard let value else {
            problem = (place, "--\(name) has no value")
            return
        }
        given.append(Given(name: name, option: option, value: value, place: place))
    }
}
