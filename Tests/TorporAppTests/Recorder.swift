// SPDX-License-Identifier: Apache-2.0

import AppConnection
import Linux
import Testing

@testable import TorporApp

/// A delegate that writes down what it hears, and does what a test gives it for a message.
actor Recorder: AppDelegate {
    typealias Work = @Sendable (TorporApp) async throws -> Void

    private(set) var heard: [String] = []
    private let work: [String: Work]
    private var waiters: [(Int, CheckedContinuation<Void, Never>)] = []

    init(_ work: [String: Work] = [:]) { self.work = work }

    private func note(_ text: String, _ app: TorporApp) async throws {
        heard.append(text)
        let count = heard.count
        for (_, waiter) in waiters.filter({ $0.0 <= count }) { waiter.resume() }
        waiters.removeAll { $0.0 <= count }
        let name = text.split(separator: " ").first.map(String.init) ?? ""
        try await work[name]?(app)
    }

    /// Returns when it has heard that many.
    func wait(for count: Int) async {
        guard heard.count < count else { return }
        await withCheckedContinuation { waiters.append((count, $0)) }
    }

    func willFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws {
        try await note("willFinishLaunching \(options.reason) \(options.isForeground)", app)
    }
    func restoreState(_ app: TorporApp, state: SavedState) async throws {
        try await note("restoreState \(String(decoding: try state.read(), as: UTF8.self))", app)
    }
    func didFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws {
        try await note("didFinishLaunching", app)
    }
    func openURL(_ app: TorporApp, url: String) async throws { try await note("openURL \(url)", app) }
    func didBecomeActive(_ app: TorporApp) async throws { try await note("didBecomeActive", app) }
    func willResignActive(_ app: TorporApp) async throws { try await note("willResignActive", app) }
    func didEnterBackground(_ app: TorporApp) async throws { try await note("didEnterBackground", app) }
    func resumed(_ app: TorporApp, after gap: Duration) async throws {
        try await note("resumed \(gap.microseconds)", app)
    }
    func taskExpiring(_ app: TorporApp, task: String, remaining: Duration) async throws {
        try await note("taskExpiring \(task)", app)
    }
    func willTerminate(_ app: TorporApp, reason: String) async throws { try await note("willTerminate \(reason)", app) }
    func performFetch(_ app: TorporApp) async throws -> FetchResult? {
        try await note("performFetch", app)
        return .noData
    }
    func received(_ app: TorporApp, message: OtherMessage) async throws {
        try await note("received \(message.name)", app)
    }
    func supervisorLost(_ app: TorporApp) async { try? await note("lost", app) }
}

/// Runs a delegate against a supervisor until `body` is over, then has it end.
func running(
    _ delegate: some AppDelegate,
    under supervisor: FakeSupervisor,
    _ body: @Sendable () async throws -> Void
) async throws {
    let environment = AppEnvironment { supervisor.environment[$0] }
    let app = try TorporApp(environment: environment, isDelegate: true, takesSignals: false)
    let run = Task { try await MessageLoop(app: app, delegate: delegate).run() }
    defer { supervisor.remove() }
    do { try await body() } catch {
        app.finish()
        _ = await run.result
        throw error
    }
    app.finish()
    try await run.value
    app.engine.finish()
}
