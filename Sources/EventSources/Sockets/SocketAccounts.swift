// SPDX-License-Identifier: Apache-2.0

package import Configuration
import Engine
import Linux

/// The users and groups that own apps' socket files, as far as their lookup has succeeded. torpord looks them up on a
/// background thread when it reads a configuration, because the lookup may wait for a network directory.
package struct SocketAccounts: Sendable {
    private var owners: [String: (uid: UInt32, gid: UInt32?)] = [:]
    private var groups: [String: UInt32] = [:]
    /// An ID that no file can have. chown(2) takes this value as "do not change".
    private static let nobody = UInt32.max

    /// Creates an empty value.
    package init() {}

    /// Looks up those owners and groups of the sockets that were not found before.
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

    /// A copy of this value in which missing owners and groups of the sockets were looked up.
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

    /// An error text if the socket's owner or group was not found; nil if both were found.
    package func missing(_ specification: SocketSpecification) -> String? {
        if let name = specification.owner, owners[name] == nil {
            return "there is no user \(name), or it cannot be looked up now"
        }
        if let name = specification.group, groups[name] == nil {
            return "there is no group \(name), or it cannot be looked up now"
        }
        return nil
    }

    /// The mode, owner and group for the file of the socket.
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
