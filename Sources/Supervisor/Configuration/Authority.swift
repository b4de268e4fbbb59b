// SPDX-License-Identifier: Apache-2.0

package import Configuration
import Engine
import Linux
package import TorporAPI
package import Varlink
package import VarlinkServer

/// Checks what a peer may request. Root and the supervisor's own user may do everything. `readers` may read,
/// `operators` may also act, `posters` may only post to apps and open scenes whose template allows it, and `exporters`
/// may only read the saved states of apps that run on several machines.
package struct Authority: Sendable {
    private let readers: Set<UInt32>
    private let operators: Set<UInt32>
    private let posters: Set<UInt32>
    private let exporters: Set<UInt32>
    /// Those of the keys `readers`, `operators`, `posters` and `exporters` that name a group.
    private let setKeys: Set<String>
    /// The path of the configuration file; empty if there is none.
    let file: String
    /// The names of the groups, by the key that names them.
    private let names: [String: [String]]

    /// Looks up the groups that the configuration names. The lookup may block on a network directory, so do not make
    /// this object on the event loop. `file`: the path of the configuration file.
    package init(_ specification: SupervisorSpecification, file: String = "") {
        let names = [
            "readers": specification.readers, "operators": specification.operators,
            "posters": specification.posters, "exporters": specification.exporters,
        ]
        self.init(names, file)
    }

    private init(_ names: [String: [String]], _ file: String) {
        self.file = file
        self.names = names
        setKeys = Set(names.filter { !$0.value.isEmpty }.keys)
        func numbers(_ key: String) -> Set<UInt32> { Set((names[key] ?? []).compactMap { Users.group($0) }) }
        readers = numbers("readers")
        operators = numbers("operators")
        posters = numbers("posters")
        exporters = numbers("exporters")
    }

    /// The same groups, looked up again. Blocks as `init` does.
    func lookedUpAgain() -> Authority { Authority(names, file) }

    /// Whether the configuration names groups by name, whose numbers may change.
    var namesGroups: Bool { names.values.contains { $0.contains { UInt32($0) == nil } } }

    /// Whether both come from configurations that name the same groups.
    func hasSameNames(as other: Authority) -> Bool { names == other.names && file == other.file }

    /// Why the peer may not make the request, as a sentence; nil if the peer may make it.
    package func refusal(of request: ManagerRequest, to peer: Peer) -> String? {
        if peer.uid == 0 || peer.uid == Users.effectiveUID { return nil }
        let groups = Set(peer.groups + [peer.gid])
        if !operators.isDisjoint(with: groups) { return nil }
        if !posters.isDisjoint(with: groups) {
            if request.isForPosters { return nil }
        }
        if request.isForExporters, !exporters.isDisjoint(with: groups) { return nil }
        if request.onlyLooks {
            if !readers.isDisjoint(with: groups) { return nil }
            return "user \(peer.uid) may not look at this supervisor: "
                + remedy(["readers", "operators"] + (request.isForPosters ? ["posters"] : []))
        }
        return "user \(peer.uid) may not change apps of this supervisor: "
            + remedy(
                (request.isForPosters ? ["posters"] : request.isForExporters ? ["exporters"] : []) + ["operators"]
            )
    }

    /// The sentence that tells a peer without permission who may make the request. `keys`: the keys of the
    /// configuration that could name one of the peer's groups.
    private func remedy(_ keys: [String]) -> String {
        let list = keys.count > 1 ? keys.dropLast().joined(separator: ", ") + " or \(keys[keys.count - 1])" : keys[0]
        let place = file.isEmpty ? "" : " in \(file)"
        let now =
            setKeys.isDisjoint(with: keys)
            ? keys.count > 1 ? " (none of them is set)" : " (it is not set)" : ", from their next login on"
        return "root may (‘sudo torpor’), and the members of groups that \(list) under [supervisor]\(place) names\(now)"
    }

    /// Whether the peer is neither root, nor the supervisor's user, nor an operator. Such a peer may change things
    /// only by requests that are open to posters.
    package func isOnlyPoster(_ peer: Peer) -> Bool {
        if peer.uid == 0 || peer.uid == Users.effectiveUID { return false }
        return operators.isDisjoint(with: Set(peer.groups + [peer.gid]))
    }

    /// The sender that a peer names for a message that it posts; nil if it names none. Root and the supervisor's own
    /// user may name any sender, because ‘torpor state import’ keeps the senders of mail. Other peers may only name a
    /// sender in the form that torpor-gateway uses. Otherwise a peer could pose as root, as another user, or as an app.
    package func sender(_ named: String?, postedBy peer: Peer) throws(FieldError) -> String? {
        guard let named else { return nil }
        if peer.uid == 0 || peer.uid == Users.effectiveUID || Self.isOfGateway(named) { return named }
        guard !isOnlyPoster(peer) else {
            throw FieldError(
                field: "sender",
                problem: "must be http:NAME, nats:NAME or mqtt:NAME, as torpor-gateway names it: leave it out, and the "
                    + "sender is user \(peer.uid)"
            )
        }
        return "uid \(peer.uid) for \(named)"
    }

    /// Whether a sender has the form that torpor-gateway uses: the protocol by which the message came, and a name
    /// without control characters.
    private static func isOfGateway(_ sender: String) -> Bool {
        guard let way = ["http:", "nats:", "mqtt:"].first(where: { sender.utf8.starts(with: $0.utf8) }) else {
            return false
        }
        let name = sender.utf8.dropFirst(way.utf8.count)
        return !name.isEmpty && name.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
    }

    /// Why the peer may make no request at all, so that its input is not even read; nil if it may make some.
    package func refusal(ofAllBy peer: Peer) -> String? {
        if peer.uid == 0 || peer.uid == Users.effectiveUID { return nil }
        let groups = Set(peer.groups + [peer.gid])
        if !operators.union(readers).union(posters).union(exporters).isDisjoint(with: groups) { return nil }
        return
            "user \(peer.uid) may not look at this supervisor, nor change anything: "
            + remedy(["readers", "operators", "posters"])
    }
}

extension ManagerRequest {
    /// Whether posters may make the request.
    var isForPosters: Bool {
        switch self {
        case .post, .owners: true
        // A remote client that asks for a scene without options launches nothing. Whether posters may open scenes of
        // this template is checked later (`opened_by`).
        case .openScene(let scene): scene.remote && scene.session == .null
        default: false
        }
    }

    /// Whether exporters may make the request. A request for an app's state is checked further, because it also depends
    /// on the app.
    var isForExporters: Bool {
        switch self {
        case .exportState, .owners: true
        default: false
        }
    }

    /// Whether the request changes nothing.
    var onlyLooks: Bool {
        switch self {
        case .list, .listOf, .status, .logs, .events, .reports, .snapshot, .icon, .desktopApps, .doctor, .policies,
            .evictionOrder,
            .memory,
            .recordPolicies, .scenes, .timers, .graph, .metrics, .unhandled, .transfers, .alerts, .handlers, .data,
            .permissions, .protection,
            .describe, .owners:
            true
        case .verb(let request): request.verb == .wait
        // If the request names an app, the reply contains the payload of the app's activity. Only operators may read
        // the payload, because only they may continue the activity.
        case .activities(let app): app == nil
        case .mailbox(let request): !request.take && request.drop.isEmpty
        case .signal, .post, .open, .openScene, .replayUnhandled, .dropUnhandled, .cancelTransfers, .scheduleAlert,
            .cancelAlerts, .answerAlert, .setBadge, .purgeData,
            .settings, .lockData, .unlockData,
            .setSettings, .answerPermissions, .apply,
            .reloadPolicy,
            .exportState, .importState, .continueActivity,
            .upgrade:
            false
        }
    }
}
