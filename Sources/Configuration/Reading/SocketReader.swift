// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Linux

/// Reads `sockets`.
enum SocketReader {
    typealias SocketKey = Key<SocketSpecification>

    /// The kinds of sockets. An entry of `sockets` contains its address under the name of its kind.
    static let kinds: [Sockets.Kind] = [.stream, .datagram, .sequenced]
    /// The maximum number of sockets of an app. With more sockets, the descriptors of an app, including those that the
    /// app stores, would not fit into one message to torpor-keeper.
    static let most = 64

    /// The keys of an entry of `sockets`, except those for the address.
    static let keys: [SocketKey] = [
        .value("name", \.name, name),
        SocketKey("backlog") { context, node, socket in
            guard let backlog = Read.integer(Int32(1)...Int32.max)(context, node) else { return }
            socket.backlog = backlog
            socket.hasBacklog = true
        },
        .value("bind_ipv6_only", \.plan.ipv6Only, ipv6Only),
        .optional("bind_to_device", \.plan.device, device),
        .value("broadcast", \.broadcast, Read.boolean),
        .optional("defer_accept", \.deferAccept, deferAccept),
        .value("directory_mode", \.directoryMode, TableReader.mode),
        .value("free_bind", \.plan.freeBind, Read.boolean),
        .optional("group", \.group, Read.text),
        .value("holding", \.holding, holding),
        .value("holding_after", \.holdingAfter, Read.positiveDuration),
        .value("keep_alive", \.keepAlive, Read.boolean),
        .value("mode", \.mode, TableReader.mode),
        .value("no_delay", \.noDelay, Read.boolean),
        .value("non_blocking", \.nonBlocking, Read.boolean),
        .optional("owner", \.owner, Read.text),
        .value("pass_credentials", \.passCredentials, Read.boolean),
        .value("pass_packet_info", \.passPacketInfo, Read.boolean),
        .optional("priority", \.priority, Read.integer(0...Int32.max)),
        .value("receive_buffer", \.receiveBuffer, buffer),
        .value("remove_on_stop", \.removeOnStop, Read.boolean),
        .value("reuse_port", \.plan.reusePort, Read.boolean),
        .value("send_buffer", \.sendBuffer, buffer),
        .value("symlinks", \.symlinks, Read.paths),
        .value("transparent", \.plan.transparent, Read.boolean),
        .value("user", \.user, Read.boolean),
        .value("wake", \.wake) { Read.choice($0, $1) },
    ]

    /// All keys of an entry of `sockets`, including those for the address.
    static let names = (keys.map(\.name) + kinds.map(\.word)).sorted()

    private static let example = "[{ stream = \"127.0.0.1:8000\" }]"

    /// Keys that are used for the address in other supervisors.
    private static let foreign: Set = [
        "listen", "listen_stream", "listenstream", "address", "addr", "port", "tcp", "unix", "path", "bind",
    ]

    static func sockets(
        _ context: Context,
        _ node: Node,
        _ settings: [SettingDeclaration] = []
    ) -> [SocketSpecification]? {
        guard case .array(let nodes) = node.value else {
            return context.expected("tables, each under [[apps.NAME.sockets]], as in \(example)", node)
        }
        guard nodes.count <= most else {
            context.error("an app has at most \(most) sockets", at: node.position)
            return nil
        }
        var sockets: [SocketSpecification] = []
        for (index, node) in nodes.enumerated() {
            guard let socket = socket(context.at(index), node, index, settings) else { continue }
            if sockets.contains(where: { $0.name == socket.name }) {
                context.at(index).error("another socket is already named \(quoted(socket.name))", at: node.position)
            }
            sockets.append(socket)
        }
        return sockets
    }

    private static func socket(
        _ context: Context,
        _ node: Node,
        _ index: Int,
        _ settings: [SettingDeclaration]
    ) -> SocketSpecification? {
        if case .string(let text) = node.value {
            context.error("expected a table, found a string: write { stream = \(quoted(text)) }", at: node.position)
            return nil
        }
        guard let members = Read.members(context, node) else { return nil }
        var plans: [SocketPlan?] = []
        var template: AddressTemplate?
        var isKnown = true
        for member in members {
            let inner = context.at(member.key)
            if let kind = kinds.first(where: { $0.word == member.key }) {
                plans.append(plan(inner, member.node, kind, settings, &template))
            } else if !keys.contains(where: { $0.name == member.key }) {
                isKnown = false
                if foreign.contains(member.key.lowercased()) {
                    inner.error("there is no such key: write stream = \"127.0.0.1:8000\"", at: member.position)
                    return nil
                }
                Read.unknown(inner, member, among: names)
            }
        }
        guard plans.count == 1 else {
            context.error(
                "needs exactly one of stream, datagram and seqpacket: its address, as in stream = \"127.0.0.1:8000\"",
                at: node.position
            )
            return nil
        }
        guard let plan = plans[0], isKnown else { return nil }
        var socket = SocketSpecification(plan.kind, plan.address)
        socket.name = "\(index)"
        socket.template = template
        for member in members {
            keys.first { $0.name == member.key }?.read(context.at(member.key), member.node, &socket)
        }
        check(context, node, socket, Set(members.map(\.key)))
        return socket
    }

    private static func plan(
        _ context: Context,
        _ node: Node,
        _ kind: Sockets.Kind,
        _ settings: [SettingDeclaration],
        _ template: inout AddressTemplate?
    ) -> SocketPlan? {
        if case .integer(let number) = node.value {
            context.error("expected a string, found an integer: write \"\(number)\"", at: node.position)
            return nil
        }
        guard var text = Read.text(context, node) else { return nil }
        if !SettingTemplate.names(in: text).isEmpty {
            template = AddressTemplate(text: text, folder: context.folder)
            guard let filled = SettingReader.address(text, settings, context, node) else { return nil }
            text = filled
        }
        guard let address = AddressReader.address(text, folder: context.folder) else {
            context.error("\(quoted(text)) is not an address: write \(AddressReader.forms)", at: node.position)
            return nil
        }
        if let problem = problem(address, kind) {
            context.error(problem, at: node.position)
            return nil
        }
        return SocketPlan(kind, address)
    }

    /// Why a socket of this kind cannot have the address; nil if it can have it.
    static func problem(_ address: SocketAddress, _ kind: Sockets.Kind) -> String? {
        switch address {
        case .path(let path) where path.utf8.count > Sockets.longestPath:
            "the path of a socket has at most \(Sockets.longestPath) bytes"
        case .abstract(let name) where name.utf8.count >= Sockets.longestPath:
            "the name of a socket has at most \(Sockets.longestPath - 1) bytes"
        case .port, .ipv4, .ipv6:
            kind == .sequenced ? "seqpacket sockets have a path, \"@name\" or \"vsock:CID:PORT\"" : nil
        case .path, .abstract, .vsock: nil
        }
    }

    /// Reports an error for each key that is not valid for this kind of socket.
    private static func check(
        _ context: Context,
        _ node: Node,
        _ socket: SocketSpecification,
        _ written: Set<String>
    ) {
        let address = socket.plan.address
        let isTCP = socket.plan.kind == .stream && address.isInternet
        var isPath = false
        if case .path = address { isPath = true }
        func only(_ names: [String], _ isSo: Bool, _ what: String) {
            for name in names where written.contains(name) && !isSo {
                context.at(name).error("is only for \(what)", at: node.position)
            }
        }
        only(["no_delay", "keep_alive", "defer_accept"], isTCP, "TCP sockets")
        only(["user"], isTCP, "TCP sockets: on others the kernel cannot keep a client waiting")
        only(["reuse_port", "free_bind", "transparent", "bind_to_device"], address.isInternet, "TCP and UDP sockets")
        only(["broadcast", "pass_packet_info"], socket.plan.kind == .datagram && address.isInternet, "UDP sockets")
        only(["holding", "holding_after"], socket.plan.kind == .stream, "stream sockets")
        only(["holding_after"], socket.holding != nil, "sockets with holding")
        only(["backlog"], socket.plan.kind != .datagram, "stream and seqpacket sockets")
        only(["mode", "owner", "group", "directory_mode", "symlinks", "remove_on_stop"], isPath, "sockets with a path")
        only(["pass_credentials"], address.isUnix, "Unix sockets")
        var takesIPv4 = false
        if case .port = address { takesIPv4 = true }
        if case .ipv6(let host, _, _) = address { takesIPv4 = host.utf8.allSatisfy { $0 == 0x3a || $0 == 0x30 } }
        only(["bind_ipv6_only"], takesIPv4, "sockets on all addresses: a port, or \"[::]:PORT\"")
    }

    // MARK: Values

    private static func name(_ context: Context, _ node: Node) -> String? {
        guard let name = Read.text(context, node) else { return nil }
        guard name.utf8.count <= 64, name.utf8.allSatisfy({ $0.isNameByte || $0 == UInt8(ascii: ".") }) else {
            context.error("a name has up to 64 letters, digits, -, _ and .", at: node.position)
            return nil
        }
        return name
    }

    /// Reads `bind_ipv6_only`. For `"default"` the result is `.some(nil)`; after an error it is nil.
    private static func ipv6Only(_ context: Context, _ node: Node) -> Bool?? {
        enum Choice: String, CaseIterable {
            case machine = "default"
            case both
            case only = "ipv6-only"
        }
        let choice: Choice? = Read.choice(context, node)
        switch choice {
        case nil: return nil
        case .machine: return .some(nil)
        case .both: return .some(false)
        case .only: return .some(true)
        }
    }

    private static func device(_ context: Context, _ node: Node) -> String? {
        guard let name = Read.text(context, node) else { return nil }
        guard name.utf8.count < 16, !name.contains("/") else {
            context.error("\(quoted(name)) is not the name of a network interface", at: node.position)
            return nil
        }
        return name
    }

    private static func deferAccept(_ context: Context, _ node: Node) -> Duration? {
        guard let time = Read.positiveDuration(context, node) else { return nil }
        guard time >= .seconds(1), time <= .seconds(3600), time.components.attoseconds == 0 else {
            context.error("must be whole seconds, from 1s to 1h", at: node.position)
            return nil
        }
        return time
    }

    /// Reads `holding`. `true` means `"plain"`. `false` means that there is no page; the result is then `.some(nil)`.
    /// After an error the result is nil.
    private static func holding(_ context: Context, _ node: Node) -> HoldingPage?? {
        if case .boolean(let isWanted) = node.value { return .some(isWanted ? .plain : nil) }
        guard case .string = node.value else { return context.expected("true, \"plain\" or \"snapshot\"", node) }
        let page: HoldingPage? = Read.choice(context, node)
        return page.map { .some($0) }
    }

    private static func buffer(_ context: Context, _ node: Node) -> UInt64?? {
        guard let size = Read.size(context, node) else { return nil }
        if let size, size > UInt64(Int32.max / 2) {
            context.error("must not be more than 1GiB", at: node.position)
            return nil
        }
        return size
    }
}

/// Reports an error if two apps use the same socket address.
enum SocketConflicts {
    static func check(_ apps: [AppSpecification], _ resolver: Resolver) {
        let drafts = resolver.drafts
        var users: [String: (app: AppSpecification, socket: SocketSpecification)] = [:]
        var ports = WildcardConflicts()
        for app in apps where !app.sockets.isEmpty {
            if let draft = drafts[app.template] { checkOwners(app, draft, resolver) }
            for socket in app.sockets {
                if let problem = ports.problem(socket, app) { drafts[app.template]?.warning("sockets", problem) }
                let key = "\(socket.plan.kind.word) \(socket.plan.address) \(socket.plan.device ?? "")"
                guard let other = users[key] else {
                    users[key] = (app, socket)
                    continue
                }
                if socket.plan.reusePort, other.socket.plan.reusePort, other.app.name != app.name { continue }
                let hint: String
                if other.app.name == app.name {
                    hint = ""
                } else if app.instance != nil {
                    hint = ": put %i into it" + (socket.plan.address.isInternet ? ", or write reuse_port = true" : "")
                } else {
                    hint = ": only sockets with reuse_port = true may share a port"
                }
                drafts[app.template]?.error(
                    "sockets",
                    "\(quoted("\(socket.plan.address)")) is already an address of \(quoted(other.app.name))\(hint)"
                )
            }
        }
    }

    /// Checks that the owners and groups of the app's socket files exist, and whether torpord may set them.
    private static func checkOwners(_ app: AppSpecification, _ draft: AppDraft, _ resolver: Resolver) {
        for socket in app.sockets {
            if let owner = socket.owner {
                let number = resolver.system.userID(owner)
                if number == nil {
                    draft.warning("sockets", MissingAccount.sentence(user: owner, "the socket is not bound"))
                } else if resolver.userID != 0, number != resolver.userID {
                    draft.error(
                        "sockets",
                        "only root can give a socket the owner \(quoted(owner)): remove it, or run torpord as root"
                    )
                }
            }
            if let group = socket.group, resolver.system.groupID(group) == nil {
                draft.warning("sockets", MissingAccount.sentence(group: group, "the socket is not bound"))
            }
        }
        if app.rules.exitsOnSuspend, app.sockets.contains(where: { $0.wake == .background }) {
            draft.warning(
                "sockets",
                "an app with exits_on_suspend is launched only into the foreground: write wake = \"foreground\""
            )
        }
    }
}
