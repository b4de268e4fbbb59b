// SPDX-License-Identifier: Apache-2.0

/// Rights on files, as in linux/landlock.h.
public struct LandlockRights: OptionSet, Hashable, Sendable {
    /// The rights as bits, numbered as in the kernel.
    public let rawValue: UInt64
    /// Creates a set from the kernel's bits.
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    static let execute = LandlockRights(rawValue: 1 << 0)
    static let writeFile = LandlockRights(rawValue: 1 << 1)
    static let readFile = LandlockRights(rawValue: 1 << 2)
    static let readFolder = LandlockRights(rawValue: 1 << 3)
    static let removeFolder = LandlockRights(rawValue: 1 << 4)
    static let removeFile = LandlockRights(rawValue: 1 << 5)
    static let makeFolder = LandlockRights(rawValue: 1 << 7)
    static let makeFile = LandlockRights(rawValue: 1 << 8)
    static let makeSocket = LandlockRights(rawValue: 1 << 9)
    static let makeFIFO = LandlockRights(rawValue: 1 << 10)
    static let makeSymlink = LandlockRights(rawValue: 1 << 12)
    /// The right to link or rename files into other folders, since version 2 of Landlock. Version 1 always forbids
    /// that.
    static let refer = LandlockRights(rawValue: 1 << 13)
    /// Since version 3 of Landlock: truncate(2).
    static let truncate = LandlockRights(rawValue: 1 << 14)
    /// Since version 5 of Landlock: ioctl(2) on devices.
    static let deviceControl = LandlockRights(rawValue: 1 << 15)

    /// The rights to read and execute files, and to list folders.
    public static let reading: LandlockRights = [.execute, .readFile, .readFolder]
    static let read = reading
    static let write: LandlockRights = [
        .read, .writeFile, .removeFolder, .removeFile, .makeFolder, .makeFile, .makeSocket, .makeFIFO, .makeSymlink,
        .refer, .truncate,
    ]
    static let device: LandlockRights = [.readFile, .writeFile, .readFolder, .deviceControl]

    /// The rights that a rule for a file, not a folder, may have.
    public static let ofFiles: LandlockRights = [.execute, .writeFile, .readFile, .truncate, .deviceControl]

    /// All rights that a version of Landlock knows, including those to make device nodes (bits 6 and 11).
    static func all(_ version: Int) -> LandlockRights {
        switch version {
        case ..<1: []
        case 1: LandlockRights(rawValue: 1 << 13 - 1)
        case 2: LandlockRights(rawValue: 1 << 14 - 1)
        case 3, 4: LandlockRights(rawValue: 1 << 15 - 1)
        default: LandlockRights(rawValue: 1 << 16 - 1)
        }
    }
}

/// Folders and files that an app's sandbox opens in addition to those that permissions allow.
public struct SandboxPlaces: Hashable, Sendable {
    /// The path of the program, which the app may run.
    public var executable: String
    /// The working directory, if it is configured: the app may read it.
    public var directory: String?
    /// The folder of the app's bundle, which the app may read.
    public var bundle: String?
    /// The state directory and the data folders: the app may write to them.
    public var writable: [String] = []
    /// Folders that the app may read: those with its saved state and with the content that its subscriptions have
    /// fetched.
    public var readable: [String] = []
    /// Patterns (glob(7)) of further folders that the app may read.
    public var readablePatterns: [String] = []
    /// The app's folder in the runtime directory: the app may write to the files in it, but may not create files.
    public var runtime: String?

    /// Creates the places of an app with only a program.
    public init(executable: String) { self.executable = executable }
}

/// The Landlock ruleset of a sandboxed app, for one version of Landlock.
public struct LandlockPlan: Hashable, Sendable {
    /// A path and what may be done there.
    public struct Rule: Hashable, Sendable {
        /// An absolute path, or a pattern (glob(7)) if ``isPattern``.
        public var path: String
        /// The rights on the path. A file can have only those in ``LandlockRights/ofFiles``.
        public var rights: LandlockRights
        /// Whether ``path`` is a pattern with wildcards.
        public var isPattern = false
        /// Whether the configuration names the path, so that a message reports if it is missing.
        public var isDeclared = false
        /// Whether only a bundle's manifest requests the path. Such a path must not lead to torpord's own files.
        public var isOfBundle = false
    }

    /// The rights on files that the ruleset restricts: the app has them only where a rule grants them.
    public var handledFiles: LandlockRights
    /// Restricted operations on TCP sockets: bit 0 is bind(2), bit 1 connect(2). Since version 4 of Landlock.
    public var handledNetwork: UInt64
    /// Restricted access to processes outside the sandbox: bit 0 is abstract Unix sockets, bit 1 signals. Since
    /// version 6.
    public var scoped: UInt64
    /// The rules for paths.
    public var rules: [Rule]
    /// The TCP ports that the app may bind and connect to, if ``handledNetwork`` restricts them.
    public var ports: [UInt16]

    /// The most paths of an app, after patterns were expanded.
    public static let mostPaths = 256
    /// The newest version of Landlock that this code knows.
    public static let newest = 7

    /// Programs and libraries.
    private static let programs = ["/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin"]
    private static let readable = ["/etc", "/proc", "/sys"]
    private static let devices = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"]
    /// The folders that /etc/resolv.conf may be a symlink into.
    private static let resolvers = ["/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager"]

    /// Creates the ruleset of an app; nil if the kernel has no Landlock.
    ///
    /// - Parameter version: the version of Landlock, from 0 (none).
    public init?(_ grants: PermissionGrants, _ places: SandboxPlaces, version: Int) {
        guard version > 0 else { return nil }
        handledFiles = .all(version)
        handledNetwork = 0
        ports = []
        if version >= 4 {
            switch grants.network {
            case .all: break
            case .none: handledNetwork = 3
            case .ports(let some): (handledNetwork, ports) = (3, some)
            }
        }
        scoped = version >= 6 ? 3 : 0
        var rules: [Rule] = []
        func add(_ paths: [String], _ rights: LandlockRights) { rules += paths.map { Rule(path: $0, rights: rights) } }
        add(Self.programs + [places.executable], .read)
        add(Self.readable, [.readFile, .readFolder, .execute])
        add(Self.devices, .device)
        add([places.directory, places.bundle].compactMap(\.self), .read)
        add(places.writable, .write)
        add(places.readable, [.readFile, .readFolder])
        rules += places.readablePatterns.map { Rule(path: $0, rights: [.readFile, .readFolder], isPattern: true) }
        if let runtime = places.runtime { add([runtime], [.readFile, .readFolder, .writeFile]) }
        if grants.network != .none { add(Self.resolvers, [.readFile, .readFolder]) }
        for device in Permission.Device.allCases where grants.devices.contains(device) {
            rules += device.nodes.map { Rule(path: $0, rights: .device, isPattern: true) }
        }
        for files in grants.files {
            var rights: LandlockRights = files.isReadOnly ? .read : .write
            // A device node also needs the right to ioctl(2).
            if !files.isReadOnly, files.path == "/" || files.path == "/dev" || files.path.hasPrefix("/dev/") {
                rights.insert(.deviceControl)
            }
            rules.append(
                Rule(
                    path: files.path,
                    rights: rights,
                    isPattern: true,
                    isDeclared: true,
                    isOfBundle: files.isOfBundle
                )
            )
        }
        let handled = handledFiles
        self.rules = rules.map { rule in
            var rule = rule
            rule.rights.formIntersection(handled)
            return rule
        }
    }

    /// Whether only Landlock can confine an app with these permissions.
    public static func isNeeded(for grants: PermissionGrants) -> Bool {
        if case .ports = grants.network { return true }
        return !grants.hasAllFiles
    }
}
