// SPDX-License-Identifier: Apache-2.0

import Configuration
import Lifecycle
import Linux

/// The users and groups that a configuration names, apart from those that apps run as: looked up when it is read, which
/// may wait for a directory on the network, and never in the loop.
struct NamedAccounts: Sendable {
    /// Who may ask what.
    let authority: Authority
    /// Who is believed where the machine is, beside root and the supervisor's own user: gpsd, where an app wants to know.
    let gpsd: UInt32?
    private var owners: [String: (uid: UInt32, gid: UInt32?)] = [:]
    private var groups: [String: UInt32] = [:]

    /// Looks up every name, once.
    init(_ configuration: TorporConfiguration) {
        authority = Authority(configuration.supervisor)
        let wantsPositions = configuration.apps.contains { $0.backgroundModes.contains(.location) }
        gpsd = wantsPositions ? Users.lookup("gpsd")?.uid : nil
        for app in configuration.apps { lookUp(app.sockets) }
    }

    /// Looks up those names of these sockets that were not found yet.
    private mutating func lookUp(_ sockets: [SocketSpecification]) {
        for socket in sockets {
            if let name = socket.owner, owners[name] == nil {
                let user = Users.lookup(name)
                if let uid = user?.uid ?? UInt32(name) { owners[name] = (uid, user?.gid) }
            }
            if let name = socket.group, groups[name] == nil { groups[name] = Users.group(name) }
        }
    }

    /// With those names of these sockets that were not found yet looked up once more.
    func lookingUp(_ sockets: [SocketSpecification]) -> NamedAccounts {
        var accounts = self
        accounts.lookUp(sockets)
        return accounts
    }

    /// Takes over what another look has found.
    mutating func add(_ other: NamedAccounts) {
        owners.merge(other.owners) { $1 }
        groups.merge(other.groups) { $1 }
    }

    /// Whom a socket is to belong to and cannot, in a sentence; nil where everybody was found.
    func missing(_ specification: SocketSpecification) -> String? {
        if let name = specification.owner, owners[name] == nil {
            return "there is no user \(name), or it cannot be looked up now"
        }
        if let name = specification.group, groups[name] == nil {
            return "there is no group \(name), or it cannot be looked up now"
        }
        return nil
    }

    /// What the node of a socket is to be: mode, owner and group.
    func node(_ specification: SocketSpecification) -> SocketNode {
        var node = SocketNode()
        node.mode = specification.mode
        node.folderMode = specification.directoryMode
        let owner = specification.owner.flatMap { owners[$0] }
        node.uid = owner?.uid
        node.gid = specification.group.flatMap { groups[$0] } ?? owner?.gid
        return node
    }
}

/// What was read of a configuration, with whom it names; or what is wrong with it.
typealias ConfigurationRead = Result<(configuration: TorporConfiguration, accounts: NamedAccounts), DiagnosticList>

/// Where a configuration is read from.
struct ConfigurationPlace: Sendable {
    let path: String
    let workingDirectory: String

    init(_ sources: ConfigurationSources) {
        path = sources.path
        workingDirectory = sources.workingDirectory
    }

    /// Reads the files as they are now, and looks up whom they name. It may wait for disks and directories.
    func read() -> Result<(configuration: TorporConfiguration, accounts: NamedAccounts), DiagnosticList> {
        var system = ConfigurationSystem.live
        system.workingDirectory = workingDirectory
        return ConfigurationLoader.load(path: path, environment: ThisProcess.variables, system: system)
            .map { ($0, NamedAccounts($0)) }
    }
}
