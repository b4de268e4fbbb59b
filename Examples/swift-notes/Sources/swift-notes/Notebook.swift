// SPDX-License-Identifier: Apache-2.0

import TorporApp

/// Keeps notes that come over TCP, in memory; as the app's state they outlive its eviction.
actor Notebook: AppDelegate {
    private let port: UInt16
    private var notes: [String] = []
    private var server: LineServer?
    /// What was saved last: nothing is saved twice.
    private var saved: [String]?

    init(port: UInt16) { self.port = port }

    // MARK: The lifecycle

    func restoreState(_ app: TorporApp, state: SavedState) async throws {
        notes = String(decoding: try state.read(), as: UTF8.self).split(separator: "\n").map(String.init)
        saved = notes
        say("restored \(notes.count) notes")
    }

    func didFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws {
        // Clients are let in from here on.
        server = try LineServer(port: port) { [weak self, weak app] line in
            guard let self, let app else { return "error: it ends" }
            return await reply(to: line, app)
        }
        app.say(status: "\(notes.count) notes")
    }

    func didBecomeActive(_ app: TorporApp) async throws { await sayActivity(app) }

    func continueActivity(_ app: TorporApp, activity: ContinuedActivity) async throws {
        // The notes themselves have come by restoreState.
        say("continues with \(activity.title)")
    }

    func didEnterBackground(_ app: TorporApp) async throws {
        // From here on it may be stopped, and ended without another word.
        try await save(app)
    }

    func willTerminate(_ app: TorporApp, reason: String) async throws {
        server = nil
        // A shutdown of the machine does not tell an app in the foreground didEnterBackground before.
        if app.isSupervised { try await save(app) }
        say("ends (\(reason)) with \(notes.count) notes")
    }

    // MARK: Notes

    private func save(_ app: TorporApp) async throws {
        guard notes != saved else { return }
        try await app.saveState(Array(notes.joined(separator: "\n").utf8))
        saved = notes
        say("saved \(notes.count) notes")
    }

    /// Says what a user is doing here, so that the notes can move to another machine (torpor activity export).
    private func sayActivity(_ app: TorporApp) async {
        // In the background there is none, which is no error here.
        try? await app.setActivity("org.example.notes", title: "\(notes.count) notes", needsState: true)
    }

    private func reply(to line: String, _ app: TorporApp) async -> String {
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        switch (words.first, words.count > 1 ? words[1] : nil) {
        case ("add", let text?):
            notes.append(text)
            await sayActivity(app)
            app.say(status: "\(notes.count) notes")
            return "ok \(notes.count)"
        case ("list", nil): return (notes + ["end"]).joined(separator: "\n")
        case ("count", nil): return "\(notes.count)"
        case ("export", let path?):
            do {
                // It is brought to its end also when the app goes to the background meanwhile.
                let copy = notes
                let lines = try await app.withBackgroundTask("export") { try await Export.write(copy, to: path) }
                return "ok \(lines)"
            } catch {
                return "error: \(error)"
            }
        default: return "error: add TEXT, list, count or export PATH"
        }
    }
}
