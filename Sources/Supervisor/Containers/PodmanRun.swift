// SPDX-License-Identifier: Apache-2.0

import Configuration
import Varlink
import WireText

/// The arguments of `podman run` for an app's container, in the order in which podman-run(1) wants them.
struct PodmanRun {
    private let container: ContainerSpecification
    private var options: [String]
    private var needsFile = false

    /// podman leaves the container in the app's own cgroup, so that torpord can limit and follow the app there. The
    /// container writes directly to the app's output (passthrough). When the container has ended, podman removes it.
    init(
        _ container: ContainerSpecification,
        name: String,
        app: String,
        template: String,
        owner: String
    ) {
        self.container = container
        options = [
            "--detach", "--rm", "--cgroups=disabled", "--sdnotify=ignore", "--log-driver=passthrough", "--name=\(name)",
            "--label=io.torpor.app=\(owner)",
        ]
        // A container that shares the network or the host name of the machine or of another container need not have a
        // host name of its own: it gets one only if the configuration names one.
        let shares =
            container.networks.contains { $0 == "host" || $0.utf8.starts(with: "container:".utf8) }
            || container.arguments.contains {
                $0.utf8.elementsEqual("--uts=host".utf8) || $0.utf8.starts(with: "--uts=container:".utf8)
            }
        if let hostname = container.hostname {
            options.append("--hostname=\(hostname)")
        } else if !shares {
            options.append("--hostname=\(Self.hostname(of: app))")
        }
        // Other containers find an instance by the instance's name, and by the name of its template, which all
        // instances share.
        let own = app.split(separator: "@").joined(separator: ".")
        let aliases = ":alias=\(own)" + (template == app ? "" : ",alias=\(template)")
        for network in container.networks {
            let isOwn = !ContainerSpecification.isMode(network) && !network.utf8.contains(UInt8(ascii: ":"))
            options.append(
                "--network=\(network)" + (isOwn ? aliases : "")
            )
        }
        add("publish", container.ports)
        add("volume", container.volumes)
        add("tmpfs", container.temporary)
        add("device", container.devices)
        add("cap-add", container.addedCapabilities)
        add("cap-drop", container.droppedCapabilities)
        add("security-opt", container.security)
        add("secret", container.secrets)
        add("env-file", container.environmentFiles)
        add("label", container.labels.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" })
        add("user", container.user.map { [$0] } ?? [])
        add("workdir", container.directory.map { [$0] } ?? [])
        add("shm-size", container.sharedMemory.map { ["\($0)b"] } ?? [])
        if container.isReadOnly { options.append("--read-only") }
        if !container.entrypoint.isEmpty {
            // podman takes an entrypoint of several words only as JSON.
            options.append("--entrypoint=\(Self.json(container.entrypoint))")
        }
        for name in Self.ownVariables { options.append("--env=\(name)") }
    }

    private mutating func add(_ option: String, _ values: [String]) {
        for value in values { options.append("--\(option)=\(value)") }
    }

    /// Adds a variable of the app. podman takes the value from its own environment, because every user can read a
    /// command line. If podman itself would obey the variable, torpor-container writes it to a file instead. Values
    /// of several lines cannot be in that file, so they are on the command line.
    mutating func addVariable(_ name: String, _ value: String) {
        if Self.isInFile(name, value) {
            needsFile = true
        } else {
            options.append(Self.isPodmans(name) ? "--env=\(name)=\(value)" : "--env=\(name)")
        }
    }

    /// Adds the file of variables that podman itself would obey, if there are any. The file comes after the
    /// configuration's files, since podman uses the last value of each variable.
    mutating func addFile(_ path: String) {
        if needsFile { options.append("--env-file=\(path)") }
    }

    /// Whether a variable reaches the container in a file.
    static func isInFile(_ name: String, _ value: String) -> Bool {
        isPodmans(name) && !value.utf8.contains { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
    }

    /// torpor-container writes the variables whose names begin with this prefix into the file, without the prefix.
    static let prefixInFile = "TORPOR_INSIDE_"

    /// Mounts a folder of the machine at the same path in the container.
    mutating func mount(_ path: String) { options.append("--volume=\(path):\(path)") }

    /// Mounts a socket of torpord at the same path in the container, and adds a variable with that path.
    mutating func addSocket(_ path: String, variable: String) {
        mount(path)
        options.append("--env=\(variable)=\(path)")
    }

    /// Adds the app's `limits`, which apply to each process of the app separately.
    mutating func addLimits(_ limits: [ResourceLimit]) {
        func text(_ value: UInt64) -> String { value == .max ? "-1" : "\(value)" }
        for limit in limits { options.append("--ulimit=\(limit.name)=\(text(limit.soft)):\(text(limit.hard))") }
    }

    /// All options, the image and the command. Options from the configuration come last, so that they override
    /// torpord's.
    func arguments(_ command: [String]) -> [String] {
        options + container.arguments + [container.image] + command
    }

    /// Variables of torpord that mean the same inside the container. Those that are set are passed to the app.
    private static let ownVariables = [
        "TORPOR_APP", "TORPOR_INCARNATION", "TORPOR_INSTANCE", "TORPOR_LAUNCH_OPTIONS", "TORPOR_LAUNCH_REASON",
        "TORPOR_SCENE", "TORPOR_SESSION", "TORPOR_SETTINGS", "TORPOR_STATE_DIRECTORY", "WATCHDOG_USEC",
        "LISTEN_FDNAMES",
    ]

    /// Whether podman, its helpers or the dynamic linker obey a variable of that name.
    static func isPodmans(_ name: String) -> Bool {
        let name = Array(name.utf8)
        return podmans.contains { $0.utf8.elementsEqual(name) } || prefixes.contains { name.starts(with: $0.utf8) }
    }

    private static let podmans: Set<String> = [
        "ALL_PROXY", "HOME", "HTTPS_PROXY", "HTTP_PROXY", "IFS", "LOGNAME", "NO_PROXY", "PATH", "SHELL", "SSL_CERT_DIR",
        "SSL_CERT_FILE", "TMPDIR", "USER", "all_proxy", "ftp_proxy", "http_proxy", "https_proxy", "no_proxy",
    ]
    private static let prefixes = [
        "BUILDAH_", "CONTAINER", "DBUS_", "DOCKER_", "GCONV_PATH", "GODEBUG", "GOGC", "GOMEMLIMIT", "GOTRACEBACK",
        "LD_",
        "LISTEN_", "LOCPATH", "MALLOC_", "NOTIFY_", "PODMAN_", "REGISTRY_", "STORAGE_", "XDG_", "_CONTAINERS_",
        "_PODMAN_", "NETAVARK_",
    ]

    /// An app's name as a host name: at most 63 bytes; underscores, dots and @ become hyphens.
    private static func hostname(of app: String) -> String {
        String(wire: app.utf8.prefix(63).map { $0.isHostByte ? $0 : UInt8(ascii: "-") })
    }

    private static func json(_ words: [String]) -> String {
        String(wire: JSON.array(words.map { .string($0) }).serialised())
    }
}

extension UInt8 {
    fileprivate var isHostByte: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}
