// SPDX-License-Identifier: Apache-2.0

/// The table `container`: podman runs the app in a container. The key `exec` is then the command inside the container.
public struct ContainerSpecification: Sendable, Hashable {
    /// The image, in the syntax of podman(1): `docker.io/library/nginx:1.27`, a digest, or the name of a local image.
    public var image = ""
    /// Whether `image` is written in the configuration, even if its value is not valid.
    var isImageWritten = false
    /// The container's name; `nil` for the default `torpor-APP`.
    public var name: String?
    /// When the image is pulled from its registry.
    public var pull: PullPolicy = .missing
    /// The maximum duration of a pull, in addition to the deadline of the launch; `nil` for no limit.
    public var pullTimeout: Duration? = .seconds(900)
    /// The entry point that replaces that of the image; empty to keep the image's own.
    public var entrypoint: [String] = []
    /// The working directory inside the container; `nil` for the image's own.
    public var directory: String?
    /// The user inside the container (`NAME`, `UID` or `UID:GID`); `nil` for the image's own. This is not the app's
    /// key `user`, which names the user that runs podman.
    public var user: String?
    /// The published ports: `[[ADDRESS:]HOST_PORT:]CONTAINER_PORT[/PROTOCOL]`.
    public var ports: [String] = []
    /// The volumes and bind mounts: `SOURCE:PATH[:OPTIONS]`.
    public var volumes: [String] = []
    /// The names of networks, or one network mode such as `host`.
    public var networks: [String] = []
    /// The absolute paths of files with environment variables, which podman reads.
    public var environmentFiles: [String] = []
    /// Whether the container's root file system is read-only.
    public var isReadOnly = false
    /// The tmpfs mounts: `PATH[:OPTIONS]`.
    public var temporary: [String] = []
    /// The devices: `PATH[:PATH[:RIGHTS]]`.
    public var devices: [String] = []
    /// Capabilities in addition to podman's defaults.
    public var addedCapabilities: [String] = []
    /// Capabilities of podman's defaults that the container does not get.
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
    /// Whether the container is stopped by the stop signal that its image defines. False if `stop_signal` is written in
    /// the configuration.
    public var hasImagesStopSignal = true
    /// A command inside the container that checks the app. The app's keys `ready` and `health` use it if they are not
    /// written.
    public var health: HealthSpecification?
    /// Whether the container is ready when its health check succeeds. False if `ready` is written in the configuration.
    public var isReadyByHealth = true
    /// Further options of podman-run(1), passed unchanged.
    public var arguments: [String] = []

    /// Creates a container without an image.
    public init() {}
}

/// The values of `container.pull`: when the image is pulled from its registry.
public enum PullPolicy: String, Sendable, Hashable, CaseIterable {
    /// Before a launch, if the machine does not have the image.
    case missing
    /// Before each launch.
    case always
    /// Before each launch. If the registry does not answer, podman uses the machine's own copy of the image.
    case newer
    /// Never. If the machine does not have the image, the launch fails.
    case never
}

extension ContainerSpecification {
    /// Whether the container is in one of podman's networks, in which other containers find it by its name.
    public var hasOwnNetwork: Bool { networks.contains { !Self.isMode($0) } }

    /// The name of the container whose network this one joins; nil if it joins none.
    public var joinedContainer: String? {
        let prefix = "container:"
        guard let network = networks.first(where: { $0.utf8.starts(with: prefix.utf8) }) else { return nil }
        return String(network.dropFirst(prefix.count))
    }

    /// Whether an entry of `networks` is a network mode of podman, not the name of a network.
    public static func isMode(_ network: String) -> Bool {
        let word = network.utf8.prefix { $0 != UInt8(ascii: ":") }
        return modes.contains { $0.utf8.elementsEqual(word) }
    }

    private static let modes = ["bridge", "container", "host", "none", "ns", "pasta", "private", "slirp4netns"]
}
