// SPDX-License-Identifier: Apache-2.0

import TransferProtocol
import WireText

/// Reads `[supervisor.transfers]` and `[apps.NAME.transfers]`.
enum TransferReader {
    static let supervisor: [Key<SupervisorTransfers>] = [
        .value("connections", \.connections, Read.integer(1...1_000)),
        .value("min_free", \.minFree, FreeSpaceRule.read),
        .value("per_app", \.perApp, Read.integer(1...1_000)),
        .value("per_host", \.perHost, Read.integer(1...1_000)),
        .value("rate", \.rate, Read.size),
    ]

    static let app: [Key<TransferSpecification>] = [
        .value("allow", \.allow, patterns),
        Key("authorities") { context, node, transfers in
            each(context, node) { host, inner, node in
                if let path = Read.path(inner, node) { transfers.authorities[host] = path }
            }
        },
        Key("credentials") { context, node, transfers in
            each(context, node) { host, inner, node in
                var login = TransferLogin()
                let given = Read.table(inner, node, loginKeys, into: &login)
                for key in loginKeys where given[key.name] == nil {
                    inner.error("\(key.name) is missing", at: node.position)
                }
                transfers.credentials[host] = login
            }
        },
        .value("limit", \.limit, Read.integer(1...100_000)),
        .value("metered", \.usesMeteredLinks, Read.boolean),
        .value("resource_time", \.resourceTime, Read.deadline),
        .value("size_limit", \.sizeLimit, Read.size),
        .optional("window", \.window, window),
    ]

    private static let loginKeys: [Key<TransferLogin>] = [
        .value("user", \.user, Read.text), .value("secret", \.secret, Read.text),
    ]

    /// The maximum number of entries in each list of `transfers`.
    private static let most = 64

    @Sendable private static func patterns(_ context: Context, _ node: Node) -> [WebPattern]? {
        let patterns: [WebPattern]? = Read.elements(context, node, of: "strings") { context, node in
            guard let text = Read.text(context, node) else { return nil }
            if let pattern = WebPattern(text) { return pattern }
            context.error(
                "\(quoted(text)) is not a pattern of http or https URLs: write one like "
                    + "\"https://files.example.org/*\" or \"https://*.example.org\"",
                at: node.position
            )
            return nil
        }
        guard let patterns, patterns.count > most else { return patterns }
        context.error("has \(patterns.count) entries: at most \(most) are allowed", at: node.position)
        return nil
    }

    private static func each(_ context: Context, _ node: Node, _ read: (String, Context, Node) -> Void) {
        guard let members = Read.members(context, node) else { return }
        guard members.count <= most else {
            return context.error("has \(members.count) entries: at most \(most) are allowed", at: node.position)
        }
        for member in members {
            let inner = context.at(member.key)
            guard let address = WebAddress("https://\(member.key)/"), address.path == "/", address.port == 443,
                address.host.utf8.count == member.key.utf8.count
            else {
                inner.error(
                    "\(quoted(member.key)) is not the name of a host: write it without scheme, user, port and path, as in "
                        + "\"files.example.org\"",
                    at: member.position
                )
                continue
            }
            read(address.host, inner, member.node)
        }
    }

    @Sendable private static func window(_ context: Context, _ node: Node) -> DailyWindow? {
        guard let text = Read.text(context, node) else { return nil }
        if let window = DailyWindow(text) { return window }
        let times = text.split(separator: "-", omittingEmptySubsequences: false)
        if times.count == 2, let start = DailyWindow.minutes(times[0]), start == DailyWindow.minutes(times[1]) {
            context.error("begins when it ends: remove it to allow transfers at any time", at: node.position)
            return nil
        }
        context.error("\(quoted(text)) is not a time window: write one like \"01:00-05:00\"", at: node.position)
        return nil
    }

    /// Checks that the settings which `credentials` names exist and are secret.
    static func check(_ draft: AppDraft) {
        let secrets = draft.specification.declaredSettings.filter(\.isSecret).map(\.name)
        for (host, login) in draft.specification.transfers.credentials.sorted(by: { $0.key < $1.key })
        where !login.secret.isEmpty && !secrets.contains(where: { $0.utf8.elementsEqual(login.secret.utf8) }) {
            draft.error(
                "transfers",
                "the credentials for \(host) name the secret \(quoted(login.secret)), which the app does not have: declare "
                    + "it in settings, with type = \"secret\"" + draft.hint(login.secret, among: secrets)
            )
        }
    }

    @Sendable static func members(of transfers: SupervisorTransfers) -> [String: String] {
        [
            "connections": "\(transfers.connections)", "min_free": transfers.minFree.written[""] ?? "none",
            "per_app": "\(transfers.perApp)", "per_host": "\(transfers.perHost)",
            "rate": transfers.rate.map(Write.size) ?? "none",
        ]
    }

    @Sendable static func members(of transfers: TransferSpecification) -> [String: String] {
        var members = [
            "allow": Write.value(.array(transfers.allow.map { .string($0.text) })), "limit": "\(transfers.limit)",
            "metered": "\(transfers.usesMeteredLinks)",
            "resource_time": transfers.resourceTime.map(Quantity.text) ?? "none",
            "size_limit": transfers.sizeLimit.map(Write.size) ?? "none",
        ]
        members["window"] = transfers.window?.text
        for (host, login) in transfers.credentials {
            members["credentials.\(host)"] = "\(login.user), \(login.secret)"
        }
        for (host, path) in transfers.authorities { members["authorities.\(host)"] = path }
        return members
    }
}
