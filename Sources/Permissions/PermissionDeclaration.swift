// SPDX-License-Identifier: Apache-2.0

/// An entry of `[apps.NAME.permissions]`: what an app asks for, and why.
public struct PermissionDeclaration: Hashable, Sendable {
    /// The answer that applies as long as no person has given one.
    public enum Default: String, CaseIterable, Sendable {
        /// Withheld until a person answers.
        case ask
        case allow
        case deny
    }

    /// The permission.
    public var permission: Permission
    /// Why the app needs the permission, in one line; shown with the question.
    public var purpose: String
    /// The purpose by language.
    public var purposes: [String: String] = [:]
    /// The answer without a person's.
    public var initial = Default.ask
    /// The TCP ports that `network` opens, sorted; empty for all of them, and for other permissions.
    public var ports: [UInt16] = []

    /// Most permissions of an app.
    public static let most = 64
    /// Most ports of `network`.
    public static let mostPorts = 64

    /// Creates a declaration with the default answer `ask`.
    public init(_ permission: Permission, purpose: String) {
        self.permission = permission
        self.purpose = purpose
    }

    /// The name of the permission.
    public var name: String { permission.name }

    /// What else the answer is about: a wider one needs another answer.
    public var scope: [UInt16] { ports }

    /// Whether an answer for `scope` covers this declaration too: its ports are among those of the answer.
    public func isCovered(by scope: [UInt16]) -> Bool {
        scope.isEmpty || (!ports.isEmpty && ports.allSatisfy(scope.contains))
    }
}

/// A person's answer.
public struct PermissionAnswer: Hashable, Sendable {
    /// The name of the permission.
    public var name: String
    /// Whether it was allowed.
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

/// What applies to a permission.
public enum PermissionState: String, CaseIterable, Sendable {
    case allowed
    case denied
    /// No person has answered yet, so the permission is withheld.
    case asked
}

/// How a sandboxed app is confined.
public enum SandboxMode: String, CaseIterable, Sendable {
    /// To what it was allowed.
    case permissions = "true"
    /// As code of strangers: besides that, it may make no namespaces and keys, and has limits of its own.
    case agent
}

/// The sandbox of an app, as it is configured.
public struct Sandbox: Hashable, Sendable {
    /// How the app is confined; nil for an app without a sandbox.
    public var mode: SandboxMode?
    /// What the app asks for, sorted by name.
    public var declarations: [PermissionDeclaration] = []

    /// An app without a sandbox.
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
            // A refusal of less is a refusal of more. A permission for less says nothing about more.
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

    /// What the app may do.
    public func grants(_ answers: [PermissionAnswer] = []) -> PermissionGrants {
        PermissionGrants(states(answers).filter { $0.state == .allowed }.map(\.declaration))
    }

    /// Whether torpord does this for the app.
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

    /// Files and trees.
    public var files: [Files] = []
    /// Sockets to other machines.
    public var network = Network.none
    /// Kinds of devices.
    public var devices: Set<Permission.Device> = []
    /// What torpord does for the app.
    public var gifts: Set<Permission.Gift> = []

    /// A file or tree, or a pattern of these.
    public struct Files: Hashable, Sendable {
        /// The absolute path or pattern.
        public var path: String
        /// Whether it may only be read.
        public var isReadOnly: Bool

        /// Creates one.
        public init(path: String, isReadOnly: Bool) {
            self.path = path
            self.isReadOnly = isReadOnly
        }
    }

    /// What these declarations allow together.
    public init(_ declarations: [PermissionDeclaration] = []) {
        for declaration in declarations {
            switch declaration.permission {
            case .files(let path, let isReadOnly): files.append(Files(path: path, isReadOnly: isReadOnly))
            case .network: network = declaration.ports.isEmpty ? .all : .ports(declaration.ports)
            case .device(let device): devices.insert(device)
            case .gift(let gift): gifts.insert(gift)
            }
        }
    }

    /// Whether both open the same to the app itself, whatever torpord does for it.
    public func isSame(besidesGifts other: PermissionGrants) -> Bool {
        files == other.files && network == other.network && devices == other.devices
    }

    /// Whether every file may be read and written, so that only the network is withheld.
    public var hasAllFiles: Bool { files.contains { $0.path == "/" && !$0.isReadOnly } }
}
