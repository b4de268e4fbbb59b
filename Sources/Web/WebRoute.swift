// SPDX-License-Identifier: Apache-2.0

public import TorporAPI

/// What there is below the dashboard's address.
public enum WebRoute: Hashable, Sendable {
    /// A file of the page: its name.
    case asset(String)
    /// A token is exchanged for a cookie.
    case session
    /// Whether anybody is there; needs no token.
    case health
    /// For OpenMetrics.
    case metrics
    case apps
    case app(String)
    case logs(String)
    /// What an app showed last: a picture or a text, and no JSON.
    case snapshot(String)
    /// The picture of an app.
    case icon(String)
    /// What an app is set to, and changes of that.
    case settings(String)
    /// The messages of an app that nobody handled; POST has them told again or drops them.
    case unhandled(String)
    /// What is transferred for an app, or for all (empty); POST cancels it.
    case transfers(String)
    case events
    case reports
    case memory
    case timers
    case samples
    case graph
    case describe
    case doctor
    case stream
    /// Something is done to an app.
    case verb(String, Verb)

    private static let verbs: [String: Verb] = [
        "start": .start, "stop": .stop, "restart": .restart, "foreground": .foreground, "background": .background,
        "suspend": .suspend, "resume": .resume, "kill": .kill, "reset": .reset, "hold": .hold,
    ]

    /// Reads a path; nil where there is nothing.
    public init?(path: String) {
        // By bytes: a slash is one whatever combines with it.
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
        case (3, let word):
            guard let verb = Self.verbs[word] else { return nil }
            self = .verb(parts[1], verb)
        default: return nil
        }
    }

    private static let plain: [String: WebRoute] = [
        "apps": .apps, "events": .events, "reports": .reports, "memory": .memory, "timers": .timers,
        "samples": .samples, "graph": .graph, "describe": .describe, "doctor": .doctor, "stream": .stream,
        "session": .session, "transfers": .transfers(""),
    ]

    /// The methods that it takes.
    public var methods: [String] {
        switch self {
        case .asset, .health: ["GET", "HEAD"]
        case .verb, .session: ["POST"]
        case .settings, .unhandled: ["GET", "POST"]
        case .transfers(let app): app.isEmpty ? ["GET"] : ["GET", "POST"]
        default: ["GET"]
        }
    }

    /// Whether a POST to it changes something of an app.
    public var changesApp: Bool {
        switch self {
        case .verb, .settings, .unhandled, .transfers: true
        default: false
        }
    }
}
