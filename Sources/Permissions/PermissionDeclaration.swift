// SPDX-License-Identifier: Apache-2.0

/// An entry of `[apps.NAME.permissions]`: what an app asks for, and why.
public struct PermissionDeclaration: Hashable, Sendable {
    /// The answer that applies until a user has given one.
    public enum Default: String, CaseIterable, Sendable {
        /// The permission is withheld until a user answers.
        case ask
        case allow
        case deny
    }

    /// The permission.
    public var permission: Permission
    /// Why the app needs the permission, in one line; shown with the question.
    public var purpose: String
    /// The purpose in other languages, by language.
    public var purposes: [String: String] = [:]
    /// The answer that applies until a user has given one.
    public var initial = Default.ask
    /// The TCP ports that `network` opens, sorted; empty for all of them, and for other permissions.
    public var ports: [UInt16] = []
    /// Whether only a bundle's manifest requests the files. If so, the path must not lead to torpord's own files under
    /// any name. Always false for permissions other than `files`.
    public var isOfBundle = false

    /// The most permissions that an app may declare.
    public static let most = 64
    /// The most ports of `network`.
    public static let mostPorts = 64

    /// Creates a declaration with the default answer `ask`.
    public init(_ permission: Permission, purpose: String) {
        self.permission = permission
        self.purpose = purpose
    }

    /// The name of the permission.
    public var name: String { permission.name }

    /// The ports that a user's answer applies to. If the declaration later has more ports, users are asked again.
    public var scope: [UInt16] { ports }

    /// Whether an answer for `scope` covers this declaration: all its ports are among those of the answer.
    public func isCovered(by scope: [UInt16]) -> Bool {
        scope.isEmpty || (!ports.isEmpty && ports.allSatisfy(scope.contains))
    }
}

/// A user's answer to a permission that an app declares.
public struct PermissionAnswer: Hashable, Sendable {
    /// The name of the permission.
    public var name: String
    /// Whether the user allowed the permission.
    public var isAllowed: Bool
    /// The ports that the answer was about; empty for all.
    public var scope: [UInt16]

    /// Creates an answer.
    public init(name: String, isAllowed: Bool, scope: [UInt16] = []) {
        self.name = name
        self.isAllowed = isAllowed
        self.scope = scope
    }
}

/// Whether a permission applies.
public enum PermissionState: String, CaseIterable, Sendable {
    case allowed
    case denied
    /// No user has answered yet, so the permission is withheld.
    case asked
}

/// How a sandboxed app is confined.
public enum SandboxMode: String, CaseIterable, Sendable {
    /// The app may do only what its permissions allow.
    case permissions = "true"
    /// The app is confined like untrusted code: it also cannot create namespaces and kernel keys, and has limits of its
    /// own.
    case agent
}

/// The values of `on_denied`: what torpord does if the kernel reports that it has denied an access to a sandboxed app.
public enum DenialRule: String, CaseIterable, Sendable {
    /// torpord records an event.
    case log
    /// torpord records an event. If the app declares no permission for the access, torpord also ends the app.
    case end
    /// The kernel is not asked to report denials.
    case ignore
}

/// The sandbox of an app, as it is configured.
public struct Sandbox: Hashable, Sendable {
    /// How the app is confined; nil if the app has no sandbox.
    public var mode: SandboxMode?
    /// What the app asks for, sorted by name.
    public var declarations: [PermissionDeclaration] = []
    /// What torpord does if the kernel reports that it has denied an access to the app.
    public var onDenied = DenialRule.log

    /// Creates the value for an app without a sandbox.
    public init() {}

    /// The state of each declared permission.
    public func states(
        _ answers: [PermissionAnswer] = []
    ) -> [(declaration: PermissionDeclaration, state: PermissionState)] {
        declarations.map { ($0, Self.state(of: $0, answers)) }
    }

    static func state(of declaration: PermissionDeclaration, _ answers: [PermissionAnswer]) -> PermissionState {
        let name = declaration.name
        if let answer = answers.last(where: { $0.name.utf8.elementsEqual(name.utf8) }) {
            // If a user has denied some ports, a declaration with more ports is denied too. An approval does not cover
            // further ports: users are asked again.
            if !answer.isAllowed { return .denied }
            if declaration.isCovered(by: answer.scope) { return .allowed }
            return declaration.initial == .deny ? .denied : .asked
        }
        switch declaration.initial {
        case .ask: return .asked
        case .allow: return .allowed
        case .deny: return .denied
        }
    }

    /// What the app may do, given these answers.
    public func grants(_ answers: [PermissionAnswer] = []) -> PermissionGrants {
        PermissionGrants(states(answers).filter { $0.state == .allowed }.map(\.declaration))
    }

    /// Whether torpord may do `gift` for the app. Always true for an app without a sandbox.
    public func allows(_ gift: Permission.Gift, _ answers: [PermissionAnswer] = []) -> Bool {
        mode == nil || grants(answers).gifts.contains(gift)
    }
}

/// What a sandboxed app may do.
public struct PermissionGrants: Hashable, Sendable {
    /// Sockets to other machines.
    public enum Network: Hashable, Sendable {
        case none
        case all
        /// TCP only at these ports.
        case ports([UInt16])
    }

    /// The files and trees that the app may access.
    public var files: [Files] = []
    /// The sockets to other machines that the app may use.
    public var network = Network.none
    /// The kinds of devices that the app may open.
    public var devices: Set<Permission.Device> = []
    /// What torpord does for the app.
    public var gifts: Set<Permission.Gift> = []

    /// A file or tree, or a pattern of these.
    public struct Files: Hashable, Sendable {
        /// The absolute path or pattern.
        public var path: String
        /// Whether the app may only read the files.
        public var isReadOnly: Bool
        /// Whether only a bundle's manifest requests the files.
        public var isOfBundle: Bool

        /// Creates an entry from its parts.
        public init(path: String, isReadOnly: Bool, isOfBundle: Bool = false) {
            self.path = path
            self.isReadOnly = isReadOnly
            self.isOfBundle = isOfBundle
        }
    }

    /// Creates the grants that all these declarations allow together.
    public init(_ declarations: [PermissionDeclaration] = []) {
        for declaration in declarations {
            switch declaration.permission {
            case .files(let path, let isReadOnly):
                files.append(Files(path: path, isReadOnly: isReadOnly, isOfBundle: declaration.isOfBundle))
            case .network: network = declaration.ports.isEmpty ? .all : .ports(declaration.ports)
            case .device(let device): devices.insert(device)
            case .gift(let gift): gifts.insert(gift)
            }
        }
    }

    /// Whether both grants give the app's processes the same rights. Gifts (what torpord does for the app) are not
    /// compared, because they give the processes no rights.
    public func isSame(besidesGifts other: PermissionGrants) -> Bool {
        files == other.files && network == other.network && devices == other.devices
    }

    /// Whether every file may be read and written, so that only the network is withheld.
    public var hasAllFiles: Bool { files.contains { $0.path == "/" && !$0.isReadOnly } }
}
