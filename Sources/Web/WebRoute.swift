// SPDX-License-Identifier: Apache-2.0

public import TorporAPI

/// The paths of the dashboard.
public enum WebRoute: Hashable, Sendable {
    /// A static file, by its name.
    case asset(String)
    /// Exchanges the token for a cookie.
    case session
    /// Reports whether the server runs; needs no token.
    case health
    /// Metrics in OpenMetrics format.
    case metrics
    case apps
    case app(String)
    case logs(String)
    /// The app's last snapshot: a picture or a text, not JSON.
    case snapshot(String)
    /// An app's icon.
    case icon(String)
    /// An app's settings. POST changes them.
    case settings(String)
    /// An app's unhandled messages. POST delivers them again or drops them.
    case unhandled(String)
    /// The transfers of an app, or of all apps if the name is empty. POST cancels transfers.
    case transfers(String)
    /// The alerts of an app, or of all apps if the name is empty. POST answers an alert or dismisses alerts.
    case alerts(String)
    /// The permissions that an app asks for. POST answers one of them.
    case permissions(String)
    case events
    case reports
    case memory
    case timers
    case samples
    case graph
    case describe
    case doctor
    case stream
    /// A verb (command) to run on an app.
    case verb(String, Verb)

    private static let verbs: [String: Verb] = [
        "start": .start, "stop": .stop, "restart": .restart, "foreground": .foreground, "background": .background,
        "suspend": .suspend, "resume": .resume, "kill": .kill, "reset": .reset, "hold": .hold,
    ]

    /// Parses a path; nil if there is no such route.
    public init?(path: String) {
        // Split by bytes: a slash separates even if a combining character follows it.
        let parts = path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
        switch parts.count {
        case 0: self = .asset("index.html")
        case 1 where parts[0] == "healthz": self = .health
        case 1 where parts[0] == "metrics": self = .metrics
        case 1 where parts[0] != "api" && parts[0].utf8.first != UInt8(ascii: "."): self = .asset(parts[0])
        case 3... where parts[0] == "api" && parts[1] == "v1": self.init(parts: Array(parts.dropFirst(2)))
        default: return nil
        }
    }

    private init?(parts: [String]) {
        guard parts[0] == "apps", parts.count > 1 else {
            guard parts.count == 1, let plain = Self.plain[parts[0]] else { return nil }
            self = plain
            return
        }
        switch (parts.count, parts.last ?? "") {
        case (2, let name): self = .app(name)
        case (3, "logs"): self = .logs(parts[1])
        case (3, "snapshot"): self = .snapshot(parts[1])
        case (3, "icon"): self = .icon(parts[1])
        case (3, "settings"): self = .settings(parts[1])
        case (3, "unhandled"): self = .unhandled(parts[1])
        case (3, "transfers"): self = .transfers(parts[1])
        case (3, "alerts"): self = .alerts(parts[1])
        case (3, "permissions"): self = .permissions(parts[1])
        case (3, let word):
            guard let verb = Self.verbs[word] else { return nil }
            self = .verb(parts[1], verb)
        default: return nil
        }
    }

    private static let plain: [String: WebRoute] = [
        "apps": .apps, "events": .events, "reports": .reports, "memory": .memory, "timers": .timers,
        "samples": .samples, "graph": .graph, "describe": .describe, "doctor": .doctor, "stream": .stream,
        "session": .session, "transfers": .transfers(""), "alerts": .alerts(""),
    ]

    /// The HTTP methods that the route accepts.
    public var methods: [String] {
        switch self {
        case .asset, .health: ["GET", "HEAD"]
        case .verb, .session: ["POST"]
        case .settings, .unhandled, .permissions: ["GET", "POST"]
        case .transfers(let app), .alerts(let app): app.isEmpty ? ["GET"] : ["GET", "POST"]
        default: ["GET"]
        }
    }

    /// Whether a POST to the route changes an app.
    public var changesApp: Bool {
        switch self {
        case .verb, .settings, .unhandled, .transfers, .alerts, .permissions: true
        default: false
        }
    }
}
