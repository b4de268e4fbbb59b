// SPDX-License-Identifier: Apache-2.0

package import Engine
import EventLoop
package import Linux
package import Notify
import Processes

/// A descriptor that an app has stored, as torpor-keeper holds it.
struct StoreHold {
    let name: String
    /// Reports that the other end of the descriptor was closed; nil if the descriptor is not watched.
    var source: IOSource?
}

/// Descriptors that apps store. torpor-keeper holds them, so that they outlive torpord.
extension NotifySockets {
    /// Carries out what a datagram requests of the app's descriptor store.
    package func store(_ message: NotifyMessage, _ opened: [Descriptor], _ app: AppRuntime) {
        app.store.most = storeShare
        let change = app.store.apply(message, opened)
        for warning in change.warnings { note(app, .unheard, text: warning) }
        for entry in change.removed { letGo(of: entry, app) }
        for entry in change.added {
            app.storeCount += 1
            keep(entry, as: DescriptorName.store(app.name, app.storeCount, poll: entry.poll, entry.name), app)
            if let name = app.storeHolds[ObjectIdentifier(entry.descriptor)]?.name {
                supervisor.hold(name, entry.descriptor.raw)
            }
        }
    }

    /// Called when torpor-keeper holds no further descriptors of an app, because the processes that close what it has
    /// stored are blocked. What the app stores now would stay open in torpor-keeper, so nothing of it is stored for a
    /// minute.
    func pauseStore(of app: AppRuntime) { app.storesAgainAt = loop.now + .seconds(60) }

    /// Whether the app may store descriptors now.
    func storesNow(_ app: AppRuntime) -> Bool { app.storesAgainAt.map { $0 <= loop.now } ?? true }

    /// How many descriptors one app may store. All stores together use at most a quarter of the limit of open files.
    /// The rest is for torpord and torpor-keeper, so that both can always answer clients, launch apps and recover.
    private var storeShare: Int {
        let limit = (try? ThisProcess.limit(Self.openFiles).soft) ?? 1024
        return min(FDStore.limit, max(2, Int(clamping: limit / 4) / max(1, apps.count)))
    }

    /// RLIMIT_NOFILE, the limit of open files (setrlimit(2)).
    package static let openFiles: Int32 = 7

    /// Restores the store from the descriptors that torpor-keeper returns.
    func takeStore(_ app: AppRuntime) {
        var entries: [(name: String, entry: FDStore.Entry)] = []
        let prefix = DescriptorName.store(app.name)
        for (held, descriptors) in supervisor.inheritance.takeStore(of: app.name) {
            let rest = held.dropFirst(prefix.count)
            guard rest.utf8.count > 7, let descriptor = descriptors.first else { continue }
            descriptor.closesPromptly = true
            app.storeCount = max(app.storeCount, Int(rest.prefix(6)) ?? 0)
            let poll = rest.dropFirst(6).first == "p"
            entries.append((held, FDStore.Entry(name: String(rest.dropFirst(7)), descriptor: descriptor, poll: poll)))
        }
        guard !entries.isEmpty else { return }
        app.store = FDStore(restoring: entries.map(\.entry))
        for (held, entry) in entries { keep(entry, as: held, app) }
    }

    private func keep(_ entry: FDStore.Entry, as name: String, _ app: AppRuntime) {
        var hold = StoreHold(name: name)
        if entry.poll {
            // The watch fails with EPERM for a file that cannot be watched, such as a regular file. Such a file has no
            // other end that could be closed.
            hold.source = try? loop.watch(entry.descriptor.raw, []) { [weak self, weak app] _ in
                guard let self, let app else { return }
                app.store.remove(entry)
                self.letGo(of: entry, app)
                let text = "its stored descriptor \(entry.name) was closed by the other side"
                self.note(app, .descriptorClosed, text: text)
            }
        }
        app.storeHolds[ObjectIdentifier(entry.descriptor)] = hold
    }

    func letGo(of entry: FDStore.Entry, _ app: AppRuntime) {
        guard let hold = app.storeHolds.removeValue(forKey: ObjectIdentifier(entry.descriptor)) else { return }
        hold.source?.cancel()
        // First: the process that closes it last must not be faster.
        entry.descriptor.close()
        supervisor.keeper.release(hold.name)
    }
}

extension AppRuntime {
    /// The names under which torpor-keeper holds the app's stored descriptors, and the sources of those that are
    /// watched.
    var storeHolds: [ObjectIdentifier: StoreHold] {
        get { slots[StoreHoldsSlot.self, default: [:]] }
        _modify { yield &slots[StoreHoldsSlot.self, default: [:]] }
    }

    /// When the app may store descriptors again; nil if it may.
    fileprivate var storesAgainAt: Duration? {
        get { slots[StoresAgainSlot.self] }
        set { slots[StoresAgainSlot.self] = newValue }
    }
}

private enum StoresAgainSlot: Slot { typealias Value = Duration }

private enum StoreHoldsSlot: Slot { typealias Value = [ObjectIdentifier: StoreHold] }
