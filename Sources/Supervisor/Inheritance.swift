import EventLoop
import Linux
import Processes

/// What an earlier torpord left in the keeper, each descriptor taken once.
final class Inheritance {
    private var held: [String: [Descriptor]] = [:]

    /// Nothing: the first torpord of a keeper that was started by itself.
    init() {}

    /// All that the keeper holds.
    init(from keeper: Keeper) throws(Errno) {
        for (name, descriptors) in try keeper.takeAllHeld() { held[name] = descriptors }
    }

    /// Whether there is nothing.
    var isEmpty: Bool { held.isEmpty }

    /// The descriptors under a name, if they are there and nobody has taken them.
    func take(_ name: String) -> [Descriptor] { held.removeValue(forKey: name) ?? [] }

    /// The first under a name, left where it is.
    func look(_ name: String) -> Descriptor? { held[name]?.first }

    /// Names that begin so, with their descriptors, in order of the names.
    func take(prefix: String) -> [(name: String, descriptors: [Descriptor])] {
        let names = held.keys.filter { $0.hasPrefix(prefix) }.sorted()
        return names.map { ($0, take($0)) }
    }

    /// What nobody wanted.
    var remaining: [String] { held.keys.sorted() }
}

/// The names under which the keeper holds what must outlive torpord.
enum HeldName {
    static let lock = "lock"
    static let recovery = "recovery"
    static let batch = "output-batch"
    static let configuration = "configuration"
    static let control = "control"
    static func notify(_ app: String) -> String { "app/\(app)/notify" }
    static func output(_ app: String) -> String { "app/\(app)/output" }
    /// The main process, for a keeper that did not launch it.
    static func process(_ app: String) -> String { "app/\(app)/process" }
    /// All of an app's stored descriptors.
    static func store(_ app: String) -> String { "store/\(app)/" }
    /// One of them; numbers keep the order in which they came.
    static func store(_ app: String, _ number: Int, poll: Bool, _ name: String) -> String {
        let digits = String(number)
        return store(app) + String(repeating: "0", count: max(0, 6 - digits.count)) + digits + (poll ? "p" : "n") + name
    }
}
