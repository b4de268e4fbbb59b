// SPDX-License-Identifier: Apache-2.0

package import Engine
import Lifecycle
import Linux
package import Store

/// What nobody handled, and what ended whoever was told it: kept until somebody has it told again, or drops it.
///
/// What it says is in the store alone. Here is how much there is of each app: beyond ``mostItems``, or ``mostBytes``, the
/// oldest goes.
package final class UnhandledMail: Room {
    /// Why nobody is told something any more. The raw values are kept, and are what clients see.
    package enum Why: String {
        /// Nobody in the chain handles it.
        case unhandled
        /// It was told in so many runs that ended unasked.
        case crashed
        /// This version knows no such message.
        case unknownMessage = "unknown-message"
        /// It cannot be read.
        case unreadable
    }

    /// How many are kept of an app.
    package static let mostItems = 1_000
    /// Bytes that are kept of an app.
    package static let mostBytes: Int64 = 16 << 20

    /// What is kept of an app, the oldest first.
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

    /// How many are kept of the app.
    package func count(of app: AppRuntime) -> Int { shelves[app.id]?.items.count ?? 0 }

    /// Whether that is kept of the app.
    package func has(_ id: Int64, of app: AppRuntime) -> Bool {
        shelves[app.id]?.items.contains { $0.id == id } ?? false
    }

    /// The app of which something is kept.
    package func app(of id: Int64) -> AppRuntime? { apps.first { has(id, of: $0) } }

    /// What the store has.
    func load(_ contents: StoreContents) {
        for item in contents.unhandled.values.sorted(by: { $0.mail.id < $1.mail.id }) {
            guard let id = coordinator.id(of: item.mail.app), !has(item.mail.id, of: apps[id]) else { continue }
            shelve(item, apps[id])
        }
    }

    /// The file that had it was lost: what the new one has counts.
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

    /// Keeps something. `run`: the run of the app that it ended last.
    func add(_ mail: StoredMail, _ why: Why, run: Int64? = nil, _ app: AppRuntime) {
        let item = StoredUnhandled(mail: mail, why: why.rawValue, at: Clock.realtimeMicroseconds(), run: run)
        store.save(item)
        shelve(item, app)
        note(app, .notHandled, text: Self.text(item, why), reason: why.rawValue)
    }

    private static func text(_ item: StoredUnhandled, _ why: Why) -> String {
        let what = "a message about \(item.mail.topic) (\(item.mail.id))"
        let then = "‘torpor unhandled --show \(item.mail.id)’ shows it"
        switch why {
        case .unhandled: return "does not handle \(what), nor does any other app that got it: \(then)"
        case .crashed:
            let times = item.mail.standing.attempts
            return "ended \(times) times while handling \(what), which is not delivered again: \(then)"
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

    /// Gives what is kept, the oldest first.
    package func list(
        _ query: UnhandledQuery,
        _ completion: @escaping (Result<[StoredUnhandled], Store.Unavailable>) -> Void
    ) {
        // A person waits for it, and has time.
        store.unhandled(query, within: .seconds(10), completion)
    }

    /// It is kept no longer; false when it was not.
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

    /// The numbers of all that is kept of the app, the oldest first.
    package func ids(of app: AppRuntime) -> [Int64] { shelves[app.id]?.items.map(\.id) ?? [] }

    /// The app is gone for good. The store forgets all of it at once.
    func forget(_ app: AppRuntime) { shelves[app.id] = nil }
}

extension AppRuntime {
    /// How many of what it did not handle had to go since this torpord started, since there were too many.
    package var unhandledDropped: Int {
        get { slots[UnhandledDroppedSlot.self, default: 0] }
        set { slots[UnhandledDroppedSlot.self] = newValue }
    }
}

private enum UnhandledDroppedSlot: Slot { typealias Value = Int }
