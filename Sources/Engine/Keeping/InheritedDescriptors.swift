// SPDX-License-Identifier: Apache-2.0

import EventLoop
package import Linux
package import Processes

/// What an earlier torpord left in the keeper, each descriptor taken once.
package final class InheritedDescriptors {
    private var held: [String: [Descriptor]] = [:]
    /// Names of stored descriptors by app: there may be thousands of other names.
    private var stores: [String: [String]] = [:]

    /// Nothing: the first torpord of a keeper that was started by itself.
    package init() {}

    /// All that the keeper holds.
    package convenience init(from keeper: Keeper) throws(Errno) { self.init(try keeper.takeAllHeld()) }

    /// What is held, each under its name.
    package init(_ all: [(name: String, descriptors: [Descriptor])]) {
        for (name, descriptors) in all {
            held[name] = descriptors
            if let app = DescriptorName.appOfStore(name) { stores[app, default: []].append(name) }
        }
    }

    /// Whether there is nothing.
    package var isEmpty: Bool { held.isEmpty }

    /// Whether there is something under a name that nobody has taken.
    package func has(_ name: String) -> Bool { held[name] != nil }

    /// The descriptors under a name, if they are there and nobody has taken them.
    package func take(_ name: String) -> [Descriptor] { held.removeValue(forKey: name) ?? [] }

    /// The first under a name, left where it is.
    package func look(_ name: String) -> Descriptor? { held[name]?.first }

    /// The stored descriptors of an app, in the order in which they came.
    package func takeStore(of app: String) -> [(name: String, descriptors: [Descriptor])] {
        (stores.removeValue(forKey: app) ?? []).sorted().map { ($0, take($0)) }
    }

    /// What nobody wanted.
    package var remaining: [String] { held.keys.sorted() }
}

/// The names under which the keeper holds what must outlive torpord.
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
    /// A terminal, or a FIFO, whose data is waited for.
    package static func node(_ path: String) -> String { "node" + path }
    /// The node that goes by that name.
    package static func node(of name: String) -> String? { name.hasPrefix("node/") ? String(name.dropFirst(4)) : nil }
    package static func notify(_ app: String) -> String { "app/\(app)/notify" }
    package static func channel(_ app: String) -> String { "app/\(app)/app" }
    package static func output(_ app: String) -> String { "app/\(app)/output" }
    /// By which torpord and the process that transfers for the app speak.
    package static func transfers(_ app: String) -> String { "app/\(app)/transfers" }
    /// The main process, for a keeper that did not launch it.
    package static func process(_ app: String) -> String { "app/\(app)/process" }
    /// All of an app's stored descriptors.
    package static func store(_ app: String) -> String { "store/\(app)/" }
    /// The app whose stored descriptor goes by that name.
    static func appOfStore(_ name: String) -> String? {
        guard name.utf8.starts(with: "store/".utf8) else { return nil }
        return String(name.dropFirst(6).prefix { $0 != "/" })
    }
    /// One of them; numbers keep the order in which they came.
    package static func store(_ app: String, _ number: Int, poll: Bool, _ name: String) -> String {
        let digits = String(number)
        return store(app) + String(repeating: "0", count: max(0, 6 - digits.count)) + digits + (poll ? "p" : "n") + name
    }
}
