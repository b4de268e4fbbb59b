// SPDX-License-Identifier: Apache-2.0

package import Configuration
import Engine
import Linux
package import TorporAPI
import Varlink
package import VarlinkServer

/// Who may ask what: root and the supervisor's own user everything, `readers` may look, `operators` may also act; `posters`
/// may post to apps, and nothing else.
package struct Authority: Sendable {
    private let readers: Set<UInt32>
    private let operators: Set<UInt32>
    private let posters: Set<UInt32>

    /// Looks the groups up, which may wait for a directory on the network: once for each configuration.
    package init(_ specification: SupervisorSpecification) {
        readers = Set(specification.readers.compactMap { Users.group($0) })
        operators = Set(specification.operators.compactMap { Users.group($0) })
        posters = Set(specification.posters.compactMap { Users.group($0) })
    }

    /// Why the peer may not ask that, in a sentence; nil when it may.
    package func refusal(of request: ManagerRequest, to peer: Peer) -> String? {
        if peer.uid == 0 || peer.uid == Users.effectiveUID { return nil }
        let groups = Set(peer.groups + [peer.gid])
        if !operators.isDisjoint(with: groups) { return nil }
        if !posters.isDisjoint(with: groups) {
            if request.isForPosters { return nil }
        }
        if request.onlyLooks {
            if !readers.isDisjoint(with: groups) { return nil }
            return "user \(peer.uid) may not look at this supervisor: it needs to be in one of the groups named by "
                + "readers or operators under [supervisor]"
        }
        let lists = request.isForPosters ? "posters or operators" : "operators"
        return "user \(peer.uid) may not change apps of this supervisor: it needs to be in one of the groups named by "
            + "\(lists) under [supervisor]"
    }

    /// Whether the peer may do no more than post.
    package func isOnlyPoster(_ peer: Peer) -> Bool {
        if peer.uid == 0 || peer.uid == Users.effectiveUID { return false }
        return operators.isDisjoint(with: Set(peer.groups + [peer.gid]))
    }

    /// Why the peer may ask nothing at all, so that what it sends is not even read; nil when there is something.
    package func refusal(ofAllBy peer: Peer) -> String? {
        if peer.uid == 0 || peer.uid == Users.effectiveUID { return nil }
        let groups = Set(peer.groups + [peer.gid])
        if !operators.union(readers).union(posters).isDisjoint(with: groups) { return nil }
        return
            "user \(peer.uid) may not look at this supervisor, nor change anything: it needs to be in one of the groups "
            + "named by readers, operators or posters under [supervisor]"
    }
}

extension ManagerRequest {
    /// Whether posters may ask it.
    var isForPosters: Bool {
        switch self {
        case .post: true
        // Which templates they may open says each. They launch nothing by it.
        case .openScene(let scene): scene.remote && scene.session == .null
        default: false
        }
    }

    /// Whether it changes nothing.
    var onlyLooks: Bool {
        switch self {
        case .list, .listOf, .status, .logs, .events, .reports, .snapshot, .icon, .doctor, .policies, .evictionOrder,
            .memory,
            .recordPolicies, .scenes, .timers, .graph, .metrics, .unhandled, .transfers, .handlers, .data,
            .describe:
            true
        case .verb(let request): request.verb == .wait
        case .mailbox(let request): !request.take && request.drop.isEmpty
        case .signal, .post, .open, .openScene, .replayUnhandled, .dropUnhandled, .cancelTransfers, .purgeData,
            .settings,
            .setSettings, .apply,
            .reloadPolicy,
            .upgrade:
            false
        }
    }
}
