// SPDX-License-Identifier: Apache-2.0

package import Configuration
import Engine
import Linux

/// The users and groups that own sockets, as far as they were found. torpord looks them up when it reads a
/// configuration, and never in the event loop, because that may wait for a network directory.
package struct SocketAccounts: Sendable {
    private var owners: [String: (uid: UInt32, gid: UInt32?)] = [:]
    private var groups: [String: UInt32] = [:]
    /// chown(2) takes this number as "do not change", so it cannot be an owner.
    private static let nobody = UInt32.max

    /// No accounts yet.
    package init() {}

    /// Looks up the owners and groups of these sockets, as far as they were not found yet.
    package mutating func lookUp(_ sockets: [SocketSpecification]) {
        for socket in sockets {
            if let name = socket.owner, owners[name] == nil {
                let user = Users.lookup(name)
                if let uid = user?.uid ?? UInt32(name), uid != Self.nobody { owners[name] = (uid, user?.gid) }
            }
            if let name = socket.group, groups[name] == nil, let gid = Users.group(name), gid != Self.nobody {
                groups[name] = gid
            }
        }
    }

    /// A copy of this value, after looking up names that were not found yet.
    package func lookingUp(_ sockets: [SocketSpecification]) -> SocketAccounts {
        var accounts = self
        accounts.lookUp(sockets)
        return accounts
    }

    /// Adds accounts that another lookup has found.
    package mutating func add(_ other: SocketAccounts) {
        owners.merge(other.owners) { $1 }
        groups.merge(other.groups) { $1 }
    }

    /// Which owner or group of the socket was not found, as a sentence; nil if both were found.
    package func missing(_ specification: SocketSpecification) -> String? {
        if let name = specification.owner, owners[name] == nil {
            return "there is no user \(name), or it cannot be looked up now"
        }
        if let name = specification.group, groups[name] == nil {
            return "there is no group \(name), or it cannot be looked up now"
        }
        return nil
    }

    /// The mode, owner and group of the socket file.
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
