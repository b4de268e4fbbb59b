import Configuration
import Linux
import TorporAPI
import VarlinkServer

/// Who may ask what: root and the supervisor's own user everything, `readers` may look, `operators` may also act; `posters`
/// may post to apps, and nothing else.
struct Authority {
    private let readers: [String]
    private let operators: [String]
    private let posters: [String]

    init(_ specification: SupervisorSpecification) {
        readers = specification.readers
        operators = specification.operators
        posters = specification.posters
    }

    /// Why the peer may not ask that, in a sentence; nil when it may.
    func refusal(of request: ManagerRequest, to peer: Peer) -> String? {
        if peer.uid == 0 || peer.uid == Users.effectiveUID { return nil }
        let groups = Set(peer.groups + [peer.gid])
        if isMember(groups, of: operators) { return nil }
        if case .post = request, isMember(groups, of: posters) { return nil }
        if request.onlyLooks {
            if isMember(groups, of: readers) { return nil }
            return "user \(peer.uid) may not look at this supervisor: it needs to be in one of the groups named by "
                + "readers or operators under [supervisor]"
        }
        return "user \(peer.uid) may not change apps of this supervisor: it needs to be in one of the groups named by "
            + "operators under [supervisor]"
    }

    /// Why the peer may ask nothing at all, so that what it sends is not even read; nil when there is something.
    func refusal(ofAllBy peer: Peer) -> String? {
        if peer.uid == 0 || peer.uid == Users.effectiveUID { return nil }
        let groups = Set(peer.groups + [peer.gid])
        if isMember(groups, of: operators) || isMember(groups, of: readers) || isMember(groups, of: posters) {
            return nil
        }
        return
            "user \(peer.uid) may not look at this supervisor, nor change anything: it needs to be in one of the groups "
            + "named by readers, operators or posters under [supervisor]"
    }

    private func isMember(_ groups: Set<UInt32>, of names: [String]) -> Bool {
        names.contains { Users.group($0).map(groups.contains) ?? false }
    }
}

extension ManagerRequest {
    /// Whether it changes nothing.
    var onlyLooks: Bool {
        switch self {
        case .list, .listOf, .status, .logs, .events, .reports, .snapshot, .icon, .doctor, .policies, .evictionOrder,
            .memory,
            .recordPolicies, .timers, .graph, .metrics,
            .describe:
            true
        case .verb(let request): request.verb == .wait
        case .mailbox(let request): !request.take && request.drop.isEmpty
        case .signal, .post, .apply, .reloadPolicy, .upgrade: false
        }
    }
}
