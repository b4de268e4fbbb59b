// SPDX-License-Identifier: Apache-2.0

package import Configuration
import Lifecycle
package import Varlink

/// Finds apps by what a user types: a name, a glob or `tag:NAME`.
package struct Selection {
    package let apps: [AppRuntime]
    /// Finds an app by its exact name; the app may have left the configuration.
    package let named: (String) -> AppRuntime?

    /// A pattern that matches no app.
    package struct Unknown: Error {
        package let name: String
        package let nearest: String?

        package init(name: String, nearest: String?, isTooMuch: Bool = false) {
            self.name = name
            self.nearest = nearest
            self.isTooMuch = isTooMuch
        }

        /// Whether the pattern was not evaluated, because the request has more than ``Selection/mostSearches``
        /// patterns.
        var isTooMuch = false
        /// The instances of the template that the pattern names, if the request needs exactly one app.
        var instances: [String] = []

        /// A more precise error than "unknown name"; nil if the name is simply unknown.
        package var problem: FieldError? {
            if isTooMuch {
                let most = Selection.mostSearches
                let problem = "have more than \(most) patterns, tags and templates: ask in several requests"
                return FieldError(field: "apps", problem: problem)
            }
            guard !instances.isEmpty else { return nil }
            let names = instances.prefix(3).joined(separator: ", ") + (instances.count > 3 ? " …" : "")
            let problem = "must be one app, and \(name) has several instances: name one of \(names)"
            return FieldError(field: "app", problem: problem)
        }
    }

    /// The maximum number of patterns, tags and templates in a request. Each of them is compared with every app, which
    /// blocks the event loop.
    package static let mostSearches = 64
    /// The longest glob that is evaluated, in bytes. App names are shorter, so no useful glob is longer.
    private static let longestGlob = 128

    /// The apps that the patterns name, in the order of the patterns, without duplicates.
    package func resolve(_ patterns: [String]) throws(Unknown) -> [AppRuntime] {
        var found: [AppRuntime] = []
        var seen: Set<AppID> = []
        var searches = 0
        for pattern in patterns {
            if let app = exact(pattern) {
                if seen.insert(app.id).inserted { found.append(app) }
                continue
            }
            searches += 1
            guard searches <= Self.mostSearches else {
                throw Unknown(name: pattern, nearest: nil, isTooMuch: true)
            }
            let matches = search(pattern)
            if matches.isEmpty { throw Unknown(name: pattern, nearest: nearest(pattern)) }
            for app in matches where seen.insert(app.id).inserted { found.append(app) }
        }
        return found
    }

    /// Whether one of the patterns is the exact name of the app.
    package func isNamed(_ app: AppRuntime, by patterns: [String]) -> Bool { patterns.contains { exact($0) === app } }

    /// The app of that name, or the template's only instance if `name` is a template. Throws if there is none, or
    /// several.
    package func one(_ name: String) throws(Unknown) -> AppRuntime {
        if let app = exact(name) { return app }
        let instances = instances(of: name)
        if instances.count == 1 { return instances[0] }
        var unknown = Unknown(name: name, nearest: nearest(name))
        unknown.instances = instances.map(\.name)
        throw unknown
    }

    /// All instances of a template.
    private func instances(of template: String) -> [AppRuntime] {
        apps.filter { $0.specification.template == template && $0.specification.isOneOfTemplate }
    }

    private func exact(_ name: String) -> AppRuntime? {
        named(name).flatMap { $0.isListed ? $0 : nil }
    }

    private func search(_ pattern: String) -> [AppRuntime] {
        if pattern.hasPrefix("tag:") {
            let tag = String(pattern.dropFirst(4))
            return apps.filter { $0.specification.tags.contains(tag) }
        }
        if pattern.contains("*") || pattern.contains("?") {
            guard pattern.utf8.count <= Self.longestGlob else { return [] }
            let bytes = Array(pattern.utf8)
            return apps.filter { Self.matches(Array($0.name.utf8)[...], bytes[...]) }
        }
        return instances(of: pattern)
    }

    /// Whether a name matches a glob of `*` and `?`. Takes time at most proportional to the product of both lengths.
    package static func matches(_ name: ArraySlice<UInt8>, _ pattern: ArraySlice<UInt8>) -> Bool {
        var (place, at) = (name.startIndex, pattern.startIndex)
        /// The position of the last star in the pattern, and the end of the text that this star matches so far.
        var star: (at: Int, place: Int)?
        while place < name.endIndex {
            if at < pattern.endIndex, pattern[at] == UInt8(ascii: "*") {
                star = (at, place)
                at += 1
            } else if at < pattern.endIndex, pattern[at] == UInt8(ascii: "?") || pattern[at] == name[place] {
                place += 1
                at += 1
            } else if let last = star {
                star = (last.at, last.place + 1)
                (place, at) = (last.place + 1, last.at + 1)
            } else {
                return false
            }
        }
        return pattern[at...].allSatisfy { $0 == UInt8(ascii: "*") }
    }

    private func nearest(_ name: String) -> String? { Self.nearest(name, among: apps.map(\.specification)) }

    /// A suggestion for a name that no app has: a tag with that name, or the most similar name of an app or template.
    package static func nearest(_ name: String, among apps: [AppSpecification]) -> String? {
        if apps.contains(where: { $0.tags.contains(name) }) { return "tag:" + name }
        return Nearest.name(to: name, among: apps.map(\.name) + Set(apps.compactMap(\.template)).sorted())
    }
}

extension Room {
    /// Selects some of the apps in the configuration.
    package var selection: Selection {
        Selection(apps: apps.all) { [self] name in coordinator.id(of: name).map { apps[$0] } }
    }
}
