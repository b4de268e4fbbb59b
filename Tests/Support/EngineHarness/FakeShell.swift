// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
package import EventLoop
package import Lifecycle
import Linux
import Store
import TorporAPI

/// An engine with apps that have no processes, what it had done, and what was told of it. Its time stands still until a test
/// lets it pass.
package struct FakeShell {
    package let time: ManualTime
    package let engine: Engine
    package let hands: FakeHands
    package let recorder: Recorder
    package let configuration: TorporConfiguration
    private let log: Descriptor

    /// - Parameter toml: the configuration. Apps are in the order of their names.
    package init(toml: String) throws {
        let configuration = try Self.read(toml)
        try self.init(configuration, configuration.apps.map { AppDefinition($0) }, configuration.apps)
    }

    private static func read(_ toml: String) throws -> TorporConfiguration {
        let sources = ConfigurationSources(
            workingDirectory: "/",
            files: [ConfigurationSources.File(path: "/torpor.toml", text: Array(toml.utf8))]
        )
        return try ConfigurationLoader.load(sources: sources, environment: [:], userID: 0).get()
    }

    /// Apps of which nothing but the name is configured, in this order.
    package init(_ names: String...) throws {
        try self.init(names.map { AppDefinition(name: $0) })
    }

    /// Apps as the core has them, in this order.
    package init(_ apps: [AppDefinition]) throws {
        try self.init(try Self.read(""), apps, apps.map { AppSpecification(name: $0.name) })
    }

    private init(
        _ configuration: TorporConfiguration,
        _ definitions: [AppDefinition],
        _ specifications: [AppSpecification]
    ) throws {
        self.configuration = configuration
        time = ManualTime()
        engine = Engine(try EventLoop(time), try Coordinator(definitions))
        hands = FakeHands(engine)
        log = try File.open("/dev/null", .write)
        recorder = Recorder(
            engine,
            DaemonLog(level: .debug, descriptor: log.raw, stream: nil),
            EventLog(),
            keepEvent: { _ in },
            keepNumber: { _ in }
        )
        for (id, specification) in specifications.enumerated() {
            engine.apps.append(AppRuntime(id: id, specification: specification, owner: hands))
        }
    }

    /// The app of that name.
    package func app(_ name: String) -> AppRuntime {
        guard let app = engine.apps.first(where: { $0.name == name }) else { fatalError("there is no app \(name)") }
        return app
    }

    /// Where the app is.
    package func state(_ app: AppID) -> AppState { engine.machine(app).state }

    /// Where the app of that name is.
    package func state(_ name: String) -> AppState { state(app(name).id) }

    /// Asks the core for something.
    package func request(_ request: Request, _ name: String) throws { try engine.request(request, of: app(name).id) }

    /// Launches the app, in the foreground.
    package func start(_ name: String) throws { try request(.start(background: false), name) }

    /// Has a running app suspended.
    package func suspend(_ name: String) throws { try request(.suspend, name) }

    /// Lets so much time pass.
    package func pass(_ time: Duration) throws { try engine.loop.pass(time) }

    /// What was told of the app, or of the supervisor: `woken: woken by …`, oldest first.
    package func told(of name: String? = nil) -> [String] {
        recorder.events.records(apps: nil, since: nil).filter { $0.app == name }.map { "\($0.kind): \($0.text)" }
    }
}
