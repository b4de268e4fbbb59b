// SPDX-License-Identifier: Apache-2.0

package import Engine
import Lifecycle
import Linux
package import Store

/// Keeps mail that no app handled, and mail that ended the app each time it was delivered, until a user posts it again
/// or drops it.
///
/// The content of this mail is only in the store. This class tracks its number and size for each app: when an app has
/// more than ``mostItems`` or ``mostBytes``, its oldest mail is removed.
package final class UnhandledMail: Room {
    /// Why mail is no longer delivered. The raw values are stored, and clients see them.
    package enum Why: String {
        /// No app in the chain handles the mail.
        case unhandled
        /// As many launches of the app as `mail_attempts` allows have failed while they handled the mail.
        case crashed
        /// This version of torpord does not know the message.
        case unknownMessage = "unknown-message"
        /// The mail cannot be read.
        case unreadable
    }

    /// The most pieces of mail that are kept for an app.
    package static let mostItems = 1_000
    /// The most bytes of mail that are kept for an app.
    package static let mostBytes: Int64 = 16 << 20

    /// The mail that is kept for an app, oldest first.
    private struct Shelf {
        var items: [(id: Int64, size: Int64)] = []
        var bytes: Int64 = 0
    }

    package let engine: Engine
    package let recorder: Recorder
    private let store: Store
    private var shelves: [AppID: Shelf] = [:]

    init(_ engine: Engine, _ recorder: Recorder, _ store: Store) {
        self.engine = engine
        self.recorder = recorder
        self.store = store
    }

    /// How many pieces of mail are kept for the app.
    package func count(of app: AppRuntime) -> Int { shelves[app.id]?.items.count ?? 0 }

    /// Whether the mail with that number is kept for the app.
    package func has(_ id: Int64, of app: AppRuntime) -> Bool {
        shelves[app.id]?.items.contains { $0.id == id } ?? false
    }

    /// The app for which the mail with that number is kept; nil if no such mail is kept.
    package func app(of id: Int64) -> AppRuntime? { apps.first { has(id, of: $0) } }

    /// Loads the list of unhandled mail from the store.
    func load(_ contents: StoreContents) {
        for item in contents.unhandled.values.sorted(by: { $0.mail.id < $1.mail.id }) {
            guard let id = coordinator.id(of: item.mail.app), !has(item.mail.id, of: apps[id]) else { continue }
            shelve(item, apps[id])
        }
    }

    /// Loads the list of unhandled mail again, because the store's database was lost and replaced.
    func loadAgain() {
        var query = UnhandledQuery()
        query.hasPayload = false
        store.unhandled(query) { [weak self] result in
            guard let self, case .success(let rows) = result else { return }
            self.shelves = [:]
            for row in rows {
                if let id = self.coordinator.id(of: row.mail.app) { self.shelve(row, self.apps[id]) }
            }
        }
    }

    /// Stores mail as unhandled. `run`: the last incarnation (run) of the app that failed while it handled the mail.
    /// - Parameter told: how many times a delegate that has connected again and again was told it in one run.
    func add(_ mail: StoredMail, _ why: Why, run: Int64? = nil, told: Int64? = nil, _ app: AppRuntime) {
        let item = StoredUnhandled(mail: mail, why: why.rawValue, at: Clock.realtimeMicroseconds(), run: run)
        store.save(item)
        shelve(item, app)
        note(app, .notHandled, text: Self.text(item, why, told: told), reason: why.rawValue)
    }

    private static func text(_ item: StoredUnhandled, _ why: Why, told: Int64?) -> String {
        let what = "a message about \(item.mail.topic) (\(item.mail.id))"
        let then = "‘torpor unhandled --show \(item.mail.id)’ shows it"
        switch why {
        case .unhandled: return "does not handle \(what), nor does any other app that got it: \(then)"
        case .crashed:
            let times = told ?? item.mail.standing.attempts
            let did = told == nil ? "ended" : "closed its connection"
            return "\(did) \(times) times while handling \(what), which is not delivered again: \(then)"
        case .unknownMessage:
            return "did not get \(what): this version does not know \(item.mail.message): \(then)"
        case .unreadable: return "did not get \(what), which cannot be read: \(then)"
        }
    }

    private func shelve(_ item: StoredUnhandled, _ app: AppRuntime) {
        var shelf = shelves[app.id] ?? Shelf()
        shelf.items.append((item.mail.id, item.size))
        shelf.bytes += item.size
        while shelf.items.count > Self.mostItems || shelf.bytes > Self.mostBytes, shelf.items.count > 1 {
            let oldest = shelf.items.removeFirst()
            shelf.bytes -= oldest.size
            store.removeUnhandled(oldest.id, of: app.name)
            app.unhandledDropped += 1
        }
        shelves[app.id] = shelf
    }

    /// Lists the mail that is kept, oldest first. `completion` gets the mail, or the reason why the store did not
    /// answer.
    package func list(
        _ query: UnhandledQuery,
        _ completion: @escaping (Result<[StoredUnhandled], Store.Unavailable>) -> Void
    ) {
        // A user waits for the answer, so the timeout is long.
        store.unhandled(query, within: .seconds(10), completion)
    }

    /// Removes unhandled mail. Returns false if no unhandled mail has this number.
    @discardableResult
    package func drop(_ id: Int64, of app: AppRuntime) -> Bool {
        guard var shelf = shelves[app.id], let index = shelf.items.firstIndex(where: { $0.id == id }) else {
            return false
        }
        shelf.bytes -= shelf.items.remove(at: index).size
        shelves[app.id] = shelf.items.isEmpty ? nil : shelf
        store.removeUnhandled(id, of: app.name)
        return true
    }

    /// The numbers of all mail that is kept for the app, oldest first.
    package func ids(of app: AppRuntime) -> [Int64] { shelves[app.id]?.items.map(\.id) ?? [] }

    /// Called when the app was removed for good. The store itself removes all mail of the app at once.
    func forget(_ app: AppRuntime) { shelves[app.id] = nil }
}

extension AppRuntime {
    /// How many pieces of the app's unhandled mail were removed since this torpord started, because there were too
    /// many.
    package var unhandledDropped: Int {
        get { slots[UnhandledDroppedSlot.self, default: 0] }
        set { slots[UnhandledDroppedSlot.self] = newValue }
    }
}

private enum UnhandledDroppedSlot: Slot { typealias Value = Int }
