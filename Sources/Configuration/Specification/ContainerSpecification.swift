// SPDX-License-Identifier: Apache-2.0

/// The table `container`: podman runs the app in a container. `exec` is then the command inside the container.
public struct ContainerSpecification: Sendable, Hashable {
    /// The image, in the syntax of podman(1): `docker.io/library/nginx:1.27`, a digest, or the name of a local image.
    public var image = ""
    /// Whether the configuration has `image`, valid or not.
    var isImageWritten = false
    /// The container's name; `nil` for `torpor-APP`.
    public var name: String?
    /// When the image is fetched from its registry.
    public var pull: PullPolicy = .missing
    /// How long a pull may take, in addition to the deadline of the launch; `nil` for no limit.
    public var pullTimeout: Duration? = .seconds(900)
    /// The entry point, instead of that of the image; empty for that of the image.
    public var entrypoint: [String] = []
    /// The working directory inside the container; `nil` for that of the image.
    public var directory: String?
    /// The user inside the container (`NAME`, `UID` or `UID:GID`); `nil` for that of the image. The app's own key
    /// `user` is the user that runs podman.
    public var user: String?
    /// Published ports: `[[ADDRESS:]PORT:]PORT[/PROTOCOL]`.
    public var ports: [String] = []
    /// Volumes and bind mounts: `SOURCE:PATH[:OPTIONS]`.
    public var volumes: [String] = []
    /// Networks, or one mode such as `host`.
    public var networks: [String] = []
    /// The absolute paths of files with environment variables, which podman reads.
    public var environmentFiles: [String] = []
    /// Whether the container's root file system cannot be written.
    public var isReadOnly = false
    /// Filesystems in memory (tmpfs): `PATH[:OPTIONS]`.
    public var temporary: [String] = []
    /// Devices: `PATH[:PATH[:RIGHTS]]`.
    public var devices: [String] = []
    /// Capabilities in addition to podman's defaults.
    public var addedCapabilities: [String] = []
    /// Capabilities that are removed from podman's defaults.
    public var droppedCapabilities: [String] = []
    /// Values of the option `--security-opt` of podman-run(1).
    public var security: [String] = []
    /// The size of /dev/shm in bytes; `nil` for podman's default.
    public var sharedMemory: UInt64?
    /// The host name inside the container; `nil` for the app's name.
    public var hostname: String?
    /// Labels in addition to those that Torpor sets.
    public var labels: [String: String] = [:]
    /// Secrets of podman-secret(1): `NAME[,OPTIONS]`.
    public var secrets: [String] = []
    /// Whether the container is stopped by the signal that its image names, since the configuration names none.
    public var hasImagesStopSignal = true
    /// A check that runs a command inside the container, for `ready` and `health` of the app.
    public var health: HealthSpecification?
    /// Whether the container counts as ready when its health check succeeds, since the configuration does not have
    /// `ready`.
    public var isReadyByHealth = true
    /// Further options of podman-run(1), passed unchanged.
    public var arguments: [String] = []

    /// Creates a container without an image.
    public init() {}
}

/// The values of `container.pull`: when the image is fetched from its registry.
public enum PullPolicy: String, Sendable, Hashable, CaseIterable {
    /// Before a launch, if the image is not on the machine.
    case missing
    /// Before each launch.
    case always
    /// Before each launch; if the registry does not answer, the image on the machine is used.
    case newer
    /// Never: the launch fails if the image is missing.
    case never
}

extension ContainerSpecification {
    /// Whether the container is in a network of podman's, where other containers find it by its name.
    public var hasOwnNetwork: Bool { networks.contains { !Self.isMode($0) } }

    /// Whether a word of `networks` is a mode of podman, not the name of a network.
    public static func isMode(_ network: String) -> Bool {
        let word = network.utf8.prefix { $0 != UInt8(ascii: ":") }
        return modes.contains { $0.utf8.elementsEqual(word) }
    }

    private static let modes = ["bridge", "container", "host", "none", "ns", "pasta", "private", "slirp4netns"]
}
