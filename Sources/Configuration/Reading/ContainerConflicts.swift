// SPDX-License-Identifier: Apache-2.0

/// Reports an error if two containers have the same name, and a warning if two containers publish the same port, or if
/// one joins another's network without requiring its app.
enum ContainerConflicts {
    static func check(_ apps: [AppSpecification], _ resolver: Resolver) {
        var names: [String: String] = [:]
        var ports: [UInt16: [(port: PublishedPort, app: String)]] = [:]
        for app in apps where app.scenes == nil {
            guard let container = app.container, let name = app.containerName else { continue }
            if let other = names[name] {
                resolver.drafts[app.template]?.error(
                    "container",
                    "the name \(quoted(name)) is already that of the container of \(quoted(other)): write another name"
                )
            } else {
                names[name] = app.name
            }
            for text in container.ports {
                // Compare only the first 256 ports of a range, because a range may be long.
                guard let port = PublishedPort(text) else { continue }
                for number in port.numbers.prefix(256) {
                    let others = ports[number] ?? []
                    if let other = others.first(where: { $0.port.isOn(port) && $0.app != app.name }) {
                        resolver.drafts[app.template]?.warning(
                            "container",
                            "ports: \(quoted(other.app)) publishes \(number)\(port.kind == "tcp" ? "" : "/\(port.kind)") "
                                + "too, so only one of them can run at a time"
                        )
                        break
                    }
                    ports[number] = others + [(port, app.name)]
                }
            }
        }
        for app in apps {
            guard let name = app.container?.joinedContainer, let other = names[name], other != app.name,
                !app.requires.contains(other)
            else { continue }
            resolver.drafts[app.template]?.warning(
                "container",
                "networks: the network is that of the container of \(quoted(other)), so write requires = "
                    + "[\"\(other)\"]: the app is then ended with that container, and launched again with it"
            )
        }
    }
}

/// A port or a range of ports on the host, as an element of `ports` publishes it.
struct PublishedPort {
    /// The IP address on which the port is published; empty for all addresses.
    var address = ""
    var numbers: ClosedRange<UInt16>
    /// `tcp`, `udp` or `sctp`.
    var kind = "tcp"

    /// Parses an element of `ports`. Nil if podman chooses the port, or if the text still contains a placeholder.
    init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1)
        if parts.count == 2 { kind = String(parts[1]) }
        guard var rest = parts.first else { return nil }
        if rest.hasPrefix("["), let end = rest.firstIndex(of: "]") {
            address = String(rest[rest.index(after: rest.startIndex)..<end])
            rest = rest[rest.index(after: end)...]
        }
        let fields = rest.split(separator: ":", omittingEmptySubsequences: false)
        guard fields.count >= 2 else { return nil }
        if fields.count == 3, !fields[0].isEmpty { address = String(fields[0]) }
        let ends = fields[fields.count - 2].split(separator: "-").map { UInt16($0) ?? 0 }
        guard let first = ends.first, let last = ends.last, first > 0, first <= last else { return nil }
        numbers = first...last
        if ["0.0.0.0", "::"].contains(address) { address = "" }
    }

    /// Whether both ports are published with the same protocol and on the same address. If so, they must not have a
    /// port in common.
    func isOn(_ other: PublishedPort) -> Bool {
        kind == other.kind && (address.isEmpty || other.address.isEmpty || address == other.address)
    }
}
