// SPDX-License-Identifier: Apache-2.0

/// Why the dependencies of apps are invalid.
public enum DependencyError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The apps of a cycle: each requires or starts after the next one, and the last requires or starts after the
    /// first.
    case cycle([String])
    /// An app requires an app that does not exist.
    case unknown(app: String, names: String)

    /// The error as a sentence.
    public var description: String {
        switch self {
        case .cycle(let names):
            "these apps wait for each other: \((names + names.prefix(1)).joined(separator: " → "))"
        case .unknown(let app, let name): "\(app) requires \(name), which does not exist"
        }
    }
}

/// The dependencies between apps, in both directions. An app is an index (``AppID``). The graph has no cycles.
struct DependencyGraph: Sendable {
    /// For each app, the apps that must be ready before it starts and that stop only after it.
    private(set) var requires: [[Int]]
    private(set) var requiredBy: [[Int]]
    /// For each app, the apps that start before it: the apps of `requires`, and those of its `after` setting.
    private(set) var after: [[Int]]
    private(set) var before: [[Int]]

    /// An app in the graph.
    struct Place {
        var app: AppDefinition
        /// Whether the app was removed from the configuration. No configured app can depend on such an app, but the
        /// graph keeps the app's own dependencies until the app has stopped.
        var isLeaving = false
    }

    init(_ apps: [AppDefinition]) throws(DependencyError) {
        try self.init(places: apps.map { Place(app: $0) })
    }

    /// A graph of the apps in `places`, whose indices become their ids; `nil` is an unused index.
    init(places: [Place?]) throws(DependencyError) {
        var index: [String: Int] = [:]
        for (i, place) in places.enumerated() { if let place { index[place.app.name] = i } }
        requires = Array(repeating: [], count: places.count)
        requiredBy = requires
        after = requires
        before = requires
        for (i, place) in places.enumerated() {
            guard let place else { continue }
            let app = place.app
            func find(_ name: String) -> Int? {
                guard let j = index[name], place.isLeaving || places[j]?.isLeaving == false else { return nil }
                return j
            }
            for name in app.requires {
                guard let j = find(name) else {
                    if place.isLeaving { continue }
                    throw .unknown(app: app.name, names: name)
                }
                requires[i].append(j)
                requiredBy[j].append(i)
                after[i].append(j)
                before[j].append(i)
            }
            // `after` may name an app that does not exist: it only orders launches.
            for name in app.after {
                guard let j = find(name), !after[i].contains(j) else { continue }
                after[i].append(j)
                before[j].append(i)
            }
        }
        if let cycle = findCycle() { throw .cycle(cycle.map { places[$0]?.app.name ?? "" }) }
    }

    /// Adds an app on which no other app depends, at a vacant index or the next new one; or changes the dependencies of
    /// an existing app. `requires` and `after` contain indices of apps.
    mutating func put(_ app: Int, requires: [Int], after: [Int]) {
        if app == self.requires.count {
            self.requires.append([])
            requiredBy.append([])
            self.after.append([])
            before.append([])
        } else {
            for other in self.requires[app] { requiredBy[other].removeAll { $0 == app } }
            for other in self.after[app] { before[other].removeAll { $0 == app } }
        }
        self.requires[app] = requires
        self.after[app] = requires + after.filter { !requires.contains($0) }
        for other in requires { requiredBy[other].append(app) }
        for other in self.after[app] { before[other].append(app) }
    }

    /// The given apps and all apps that require them, directly or not; each app comes after the apps that require it.
    func dependentsFirst(_ apps: [Int]) -> [Int] { Self.order(apps, behind: requiredBy) }

    /// The given apps and all apps that must be launched before them, directly or indirectly. Each app comes after
    /// those that must be launched before it.
    func earlierFirst(_ apps: [Int]) -> [Int] { Self.order(apps, behind: after) }

    /// The given nodes and all nodes that can be reached from them through `others`. Each node comes after the nodes
    /// that `others` lists for it, and otherwise as early as possible.
    private static func order(_ apps: [Int], behind others: [[Int]]) -> [Int] {
        var isSeen = Array(repeating: false, count: others.count)
        var order: [Int] = []
        for app in apps where !isSeen[app] {
            isSeen[app] = true
            var path: [(node: Int, next: Int)] = [(app, 0)]
            while let (node, next) = path.last {
                guard next < others[node].count else {
                    order.append(node)
                    path.removeLast()
                    continue
                }
                path[path.count - 1].next += 1
                let other = others[node][next]
                guard !isSeen[other] else { continue }
                isSeen[other] = true
                path.append((other, 0))
            }
        }
        return order
    }

    /// Finds a cycle by depth-first search with an explicit stack: a long chain could overflow the thread's stack.
    private func findCycle() -> [Int]? {
        enum Mark { case new, open, done }
        var marks = Array(repeating: Mark.new, count: after.count)
        for root in after.indices where marks[root] == .new {
            var path: [(node: Int, next: Int)] = [(root, 0)]
            marks[root] = .open
            while let (node, next) = path.last {
                guard next < after[node].count else {
                    marks[node] = .done
                    path.removeLast()
                    continue
                }
                path[path.count - 1].next += 1
                let other = after[node][next]
                switch marks[other] {
                case .done: break
                case .open:
                    let start = path.firstIndex { $0.node == other } ?? 0
                    return path[start...].map(\.node)
                case .new:
                    marks[other] = .open
                    path.append((other, 0))
                }
            }
        }
        return nil
    }
}
