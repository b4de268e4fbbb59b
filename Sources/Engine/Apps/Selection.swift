// SPDX-License-Identifier: Apache-2.0

import Configuration
import Lifecycle
package import Varlink

/// Finds apps by what people type: a name, a glob, `tag:NAME`.
package struct Selection {
    package let apps: [AppRuntime]
    /// Finds one by its name without looking at all of them; it may have left the configuration.
    package let named: (String) -> AppRuntime?

    /// What was typed and fits nothing.
    package struct Unknown: Error {
        package let name: String
        package let nearest: String?

        package init(name: String, nearest: String?, isTooMuch: Bool = false) {
            self.name = name
            self.nearest = nearest
            self.isTooMuch = isTooMuch
        }

        /// It was not looked for: the request has more patterns than ``Selection/mostSearches``.
        var isTooMuch = false
        /// The instances that it stands for, where one app is wanted.
        var instances: [String] = []

        /// What is wrong with the request, where the name is not simply unknown.
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

    /// Patterns, tags and templates that one request may have: each is compared with every app, on the loop.
    package static let mostSearches = 64
    /// Bytes of a glob. A name has fewer; a longer glob is mostly stars.
    private static let longestGlob = 128

    /// The apps in the order typed, each once.
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

    /// The one app of that name, or the only instance of it.
    package func one(_ name: String) throws(Unknown) -> AppRuntime {
        if let app = exact(name) { return app }
        let instances = instances(of: name)
        if instances.count == 1 { return instances[0] }
        var unknown = Unknown(name: name, nearest: nearest(name))
        unknown.instances = instances.map(\.name)
        throw unknown
    }

    /// The name of a template stands for all its instances.
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

    /// Whether a name fits a glob of `*` and `?`. Time: at most the product of both lengths, whoever wrote the glob.
    package static func matches(_ name: ArraySlice<UInt8>, _ pattern: ArraySlice<UInt8>) -> Bool {
        var (place, at) = (name.startIndex, pattern.startIndex)
        /// The last star, and how far what it stands for goes.
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

    private func nearest(_ name: String) -> String? { Nearest.name(to: name, among: apps.map(\.name)) }
}

extension Room {
    /// All apps, to be chosen among.
    package var selection: Selection {
        Selection(apps: apps.all) { [self] name in coordinator.id(of: name).map { apps[$0] } }
    }
}
