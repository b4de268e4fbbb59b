// SPDX-License-Identifier: Apache-2.0

/// The ports of a container that are published on the machine.
struct PublishedPorts {
    private struct Port {
        /// The host by which the machine reaches the port, as written in a URL.
        var host: String
        var outside: ClosedRange<Int>
        var inside: ClosedRange<Int>
    }

    private var ports: [Port] = []

    /// - Parameter container: the table `container` of an app.
    init(_ container: OrderedTable<TOMLValue>) {
        guard case .array(let elements) = container["ports"] else { return }
        for case .string(let text) in elements { if let port = Self.port(text) { ports.append(port) } }
    }

    /// The URL by which the machine reaches an address inside the container; nil if the port of the address is not
    /// published.
    func outside(_ address: ProbeAddress) -> String? {
        for port in ports where port.inside.contains(address.port) {
            let number = port.outside.lowerBound + address.port - port.inside.lowerBound
            guard port.outside.contains(number) else { continue }
            return "http://\(port.host):\(number)\(address.path)"
        }
        return nil
    }

    /// Parses `[ADDRESS:]OUTSIDE:INSIDE[/tcp]`. Nil if OUTSIDE is missing, because podman then chooses another port at
    /// each launch.
    private static func port(_ text: String) -> Port? {
        var rest = text[...]
        if rest.hasSuffix("/tcp") { rest = rest.dropLast(4) }
        guard !rest.contains("/") else { return nil }
        var host = ""
        if rest.hasPrefix("["), let end = rest.firstIndex(of: "]") {
            host = String(rest[...end])
            rest = rest[rest.index(after: end)...].dropFirst()
        }
        var fields = rest.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        if fields.count == 3 { host = fields.removeFirst() }
        guard fields.count == 2, let outside = range(fields[0]), let inside = range(fields[1]) else { return nil }
        // The port is published on all addresses of the machine: use the loopback address.
        if host.isEmpty || host == "0.0.0.0" { host = "127.0.0.1" }
        if host == "[::]" { host = "[::1]" }
        return Port(host: host, outside: outside, inside: inside)
    }

    private static func range(_ text: String) -> ClosedRange<Int>? {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false).map { UInt16($0).map(Int.init) }
        guard let first = ends.first, let low = first, ends.count <= 2, let last = ends.last, let high = last,
            low <= high
        else { return nil }
        return low...high
    }
}
