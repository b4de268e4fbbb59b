// SPDX-License-Identifier: Apache-2.0

import WireText

/// The reader of `announce`.
enum AnnouncementReader {
    static let keys: [Key<AnnouncementSpecification>] = [
        .value("type", \.type, type),
        .optional("name", \.name, name),
        .optional("socket", \.socket, Read.text),
        .optional("port", \.port, Read.integer(UInt16(1)...UInt16.max)),
        .value("txt", \.text, text),
        .value("while", \.time) { Read.choice($0, $1) },
    ]

    static func announcements(_ context: Context, _ node: Node) -> [AnnouncementSpecification]? {
        guard let all = Read.elements(context, node, of: "tables", announcement) else { return nil }
        guard all.count <= AnnouncementSpecification.most else {
            context.error("an app announces at most \(AnnouncementSpecification.most) services", at: node.position)
            return nil
        }
        return all
    }

    private static func announcement(_ context: Context, _ node: Node) -> AnnouncementSpecification? {
        guard case .table = node.value else {
            return context.expected("a table such as { type = \"_http._tcp\", socket = \"http\" }", node)
        }
        var announcement = AnnouncementSpecification()
        let found = Read.table(context, node, keys, into: &announcement)
        guard found["type"] != nil else {
            context.error("type is missing: write the service's type, such as \"_http._tcp\"", at: node.position)
            return nil
        }
        guard (found["socket"] == nil) != (found["port"] == nil) else {
            context.error("must have either socket, one of the app's sockets, or port", at: node.position)
            return nil
        }
        return announcement
    }

    /// Reads a type of service such as `_http._tcp`: `_`, then 1 to 15 letters, digits or `-`, then the protocol (RFC
    /// 6763, 7).
    private static func type(_ context: Context, _ node: Node) -> String? {
        guard let text = Read.text(context, node) else { return nil }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let word = parts.first?.dropFirst().utf8
        let isFine =
            parts.count == 2 && ["_tcp", "_udp"].contains(parts[1]) && text.hasPrefix("_")
            && (1...15).contains(word?.count ?? 0)
            && word?.allSatisfy {
                (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0) || $0 == 0x2d
            } ?? false
        if isFine { return text }
        context.error("\(quoted(text)) is no type of a service: write one such as \"_http._tcp\"", at: node.position)
        return nil
    }

    private static func name(_ context: Context, _ node: Node) -> String? {
        guard let text = Read.text(context, node) else { return nil }
        let isFine =
            (1...AnnouncementSpecification.longestName).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
        if isFine { return text }
        context.error(
            "a service's name has 1 to \(AnnouncementSpecification.longestName) bytes without control characters",
            at: node.position
        )
        return nil
    }

    private static func text(_ context: Context, _ node: Node) -> [String]? {
        guard let members = Read.members(context, node) else { return nil }
        var pairs: [String] = []
        for member in members {
            let inner = context.at(member.key)
            // A value may be empty, but `Read.text` rejects empty texts.
            var value: String? = ""
            if case .string("") = member.node.value {} else { value = Read.text(inner, member.node) }
            guard let value else { return nil }
            let pair = member.key + "=" + value
            let isKey = !member.key.isEmpty && member.key.utf8.allSatisfy { (0x20...0x7e).contains($0) && $0 != 0x3d }
            guard isKey, pair.utf8.count <= AnnouncementSpecification.longestPair else {
                inner.error(
                    "an entry of txt has at most \(AnnouncementSpecification.longestPair) bytes, with an ASCII key without =",
                    at: member.position
                )
                return nil
            }
            pairs.append(pair)
        }
        guard pairs.reduce(0, { $0 + $1.utf8.count + 1 }) <= AnnouncementSpecification.longestText else {
            context.error(
                "txt has more than \(AnnouncementSpecification.longestText) bytes, which do not fit into a packet",
                at: node.position
            )
            return nil
        }
        return pairs.sorted()
    }

    /// Checks that `announce` matches the app's sockets.
    static func check(_ app: AppSpecification, _ draft: AppDraft) {
        for announcement in app.announcements {
            guard let name = announcement.socket else {
                if announcement.time == .always {
                    draft.warning(
                        "announce",
                        "while = \"always\" is for one of the app's sockets: at a port that the app opens itself, "
                            + "nothing answers while it does not run"
                    )
                }
                continue
            }
            guard let socket = app.sockets.first(where: { $0.name == name }), announcement.port(of: app) != nil else {
                draft.error("announce", "\(quoted(name)) is none of the app's sockets with a port")
                continue
            }
            if announcement.time == .always, socket.wake == .none {
                draft.warning(
                    "announce",
                    "a connection to the socket \(quoted(name)) does not wake the app (wake = \"none\"), so nothing "
                        + "answers while it sleeps"
                )
            }
        }
    }
}
