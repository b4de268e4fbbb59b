// SPDX-License-Identifier: Apache-2.0

import EventLoop
package import Linux
package import Processes

/// The descriptors that an earlier torpord left in the keeper. Each descriptor can be taken only once.
package final class InheritedDescriptors {
    private var held: [String: [Descriptor]] = [:]
    /// Names of the descriptors that apps stored (FDSTORE=1), grouped by app, because searching thousands of names for
    /// each app would take long.
    private var stores: [String: [String]] = [:]

    /// Creates an empty object, for the first torpord under a keeper.
    package init() {}

    /// Takes over all descriptors that the keeper holds.
    package convenience init(from keeper: Keeper) throws(Errno) { self.init(try keeper.takeAllHeld()) }

    /// Creates an object with the given descriptors, by name.
    package init(_ all: [(name: String, descriptors: [Descriptor])]) {
        held.reserveCapacity(all.count)
        for (name, descriptors) in all {
            held[name] = descriptors
            if let app = DescriptorName.appOfStore(name) { stores[app, default: []].append(name) }
        }
    }

    /// Whether no descriptors are left.
    package var isEmpty: Bool { held.isEmpty }

    /// Whether a name has descriptors that were not taken yet.
    package func has(_ name: String) -> Bool { held[name] != nil }

    /// Removes the descriptors with a name, and returns them; empty if there are none.
    package func take(_ name: String) -> [Descriptor] { held.removeValue(forKey: name) ?? [] }

    /// The first descriptor with a name. It stays available to `take`.
    package func look(_ name: String) -> Descriptor? { held[name]?.first }

    /// Takes the descriptors that an app stored (FDSTORE=1), in the order in which it stored them.
    package func takeStore(of app: String) -> [(name: String, descriptors: [Descriptor])] {
        (stores.removeValue(forKey: app) ?? []).sorted().map { ($0, take($0)) }
    }

    /// The names whose descriptors were not taken yet.
    package var remaining: [String] { held.keys.sorted() }
}

/// The names under which the keeper has descriptors that must survive torpord.
package enum DescriptorName {
    package static let lock = "lock"
    package static let recovery = "recovery"
    package static let batch = "output-batch"
    package static let journal = "journal"
    package static let configuration = "configuration"
    package static let control = "control"
    package static let paths = "paths"
    package static let devices = "devices"
    package static let settings = "settings"
    /// The name of the socket between torpord and torpor-desktop.
    package static let desktop = "helper/desktop"
    /// The name of the record of the app whose window has the focus.
    package static let focus = "focus"
    /// The name of the record of what users are doing in apps.
    package static let activities = "activities"
    /// The name of the record of the networks (`networks`) that the machine is connected to.
    package static let networks = "networks"
    /// The name of the record of the apps that another program's sound interrupts.
    package static let soundFocus = "sound-focus"
    /// The name of the audit socket, on which the kernel reports accesses that it denies to sandboxed apps.
    package static let audit = "audit"
    /// The name of the record that maps the kernel's Landlock domains to apps (``DenialWatch``).
    package static let denials = "denials"
    /// The name of the record of the environment files with which apps were launched.
    package static let environments = "environments"
    /// The name for the descriptor of a terminal or FIFO that is watched for data.
    package static func node(_ path: String) -> String { "node" + path }
    /// The path of the terminal or FIFO with that name; nil for other names.
    package static func node(of name: String) -> String? { name.hasPrefix("node/") ? String(name.dropFirst(4)) : nil }
    /// The name of a user's connection that torpor-keeper closes last, because descriptors wait in its queue.
    package static func discard(_ uid: UInt32) -> String { "discard/\(uid)" }
    package static func notify(_ app: String) -> String { "app/\(app)/notify" }
    package static func channel(_ app: String) -> String { "app/\(app)/app" }
    package static func output(_ app: String) -> String { "app/\(app)/output" }
    /// The name of the socket between torpord and the app's transfer process.
    package static func transfers(_ app: String) -> String { "app/\(app)/transfers" }
    /// The name of the pidfd of an app's main process. A torpor-keeper that did not launch the process needs the
    /// pidfd to watch it.
    package static func process(_ app: String) -> String { "app/\(app)/process" }
    /// The prefix of the names of all descriptors that an app stored (FDSTORE=1).
    package static func store(_ app: String) -> String { "store/\(app)/" }
    /// The app that stored the descriptor with this name; nil if no app did.
    package static func appOfStore(_ name: String) -> String? {
        guard name.utf8.starts(with: "store/".utf8) else { return nil }
        return String(name.dropFirst(6).prefix { $0 != "/" })
    }
    /// The name of a descriptor that an app stored; the number preserves the order of arrival.
    package static func store(_ app: String, _ number: Int, poll: Bool, _ name: String) -> String {
        let digits = String(number)
        return store(app) + String(repeating: "0", count: max(0, 6 - digits.count)) + digits + (poll ? "p" : "n") + name
    }
}
