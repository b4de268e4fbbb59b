// SPDX-License-Identifier: Apache-2.0

/// `container`: an app that podman runs in a container. `exec` is then the command inside it.
public struct ContainerSpecification: Sendable, Hashable {
    /// The image, as podman(1) takes it: `docker.io/library/nginx:1.27`, a digest, or the name of a local one.
    public var image = ""
    /// Whether `image` stands in the configuration, right or wrong.
    var isImageWritten = false
    /// The container's name; `nil` for `torpor-APP`.
    public var name: String?
    /// When the image is fetched from its registry.
    public var pull: PullPolicy = .missing
    /// How long a pull may take, beside the launch's own deadline; `nil` for any time.
    public var pullTimeout: Duration? = .seconds(900)
    /// Replaces the image's entry point; empty for that of the image.
    public var entrypoint: [String] = []
    /// The working directory inside; `nil` for that of the image.
    public var directory: String?
    /// The user inside (`NAME`, `UID` or `UID:GID`); `nil` for that of the image. `user` of the app is who runs podman.
    public var user: String?
    /// Published ports: `[[ADDRESS:]PORT:]PORT[/PROTOCOL]`.
    public var ports: [String] = []
    /// Volumes and bind mounts: `SOURCE:PATH[:OPTIONS]`.
    public var volumes: [String] = []
    /// Networks, or one mode such as `host`.
    public var networks: [String] = []
    /// Files of variables that podman reads; absolute.
    public var environmentFiles: [String] = []
    /// Whether the container's root file system cannot be written.
    public var isReadOnly = false
    /// File systems in memory: `PATH[:OPTIONS]`.
    public var temporary: [String] = []
    /// Devices: `PATH[:PATH[:RIGHTS]]`.
    public var devices: [String] = []
    /// Capabilities beside podman's usual ones.
    public var addedCapabilities: [String] = []
    /// Capabilities that are taken away.
    public var droppedCapabilities: [String] = []
    /// Options of podman-run(1) `--security-opt`.
    public var security: [String] = []
    /// Bytes of /dev/shm; `nil` for podman's default.
    public var sharedMemory: UInt64?
    /// The host name inside; `nil` for the app's name.
    public var hostname: String?
    /// Labels beside Torpor's own.
    public var labels: [String: String] = [:]
    /// Secrets of podman-secret(1): `NAME[,OPTIONS]`.
    public var secrets: [String] = []
    /// Whether the image says which signal ends what it runs, since the configuration does not.
    public var hasImagesStopSignal = true
    /// How the container is asked whether it works, by a command in it: for `ready` and `health` of the app.
    public var health: HealthSpecification?
    /// Whether its health shows when it is ready, since the configuration does not say otherwise.
    public var isReadyByHealth = true
    /// Further options of podman-run(1), as they are.
    public var arguments: [String] = []

    /// A container without an image.
    public init() {}
}

/// `container.pull`.
public enum PullPolicy: String, Sendable, Hashable, CaseIterable {
    /// If the image is not there.
    case missing
    /// Before each launch.
    case always
    /// Before each launch, and what is there counts if the registry does not answer.
    case newer
    /// Never: a missing image fails the launch.
    case never
}

extension ContainerSpecification {
    /// Whether it has a network of its own, in which other containers find it by name.
    public var hasOwnNetwork: Bool { networks.contains { !Self.isMode($0) } }

    /// Whether a word of `networks` is a mode of podman's and not the name of a network.
    public static func isMode(_ network: String) -> Bool {
        let word = network.utf8.prefix { $0 != UInt8(ascii: ":") }
        return modes.contains { $0.utf8.elementsEqual(word) }
    }

    private static let modes = ["bridge", "container", "host", "none", "ns", "pasta", "private", "slirp4netns"]
}
