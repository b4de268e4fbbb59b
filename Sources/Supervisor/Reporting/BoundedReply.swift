// SPDX-License-Identifier: Apache-2.0

import Store
package import Varlink

/// Replies whose size apps determine, for instance by the arguments of their processes, or by how many transfers they
/// start. They must not grow so large that no client can read them.
package enum BoundedReply {
    /// The maximum size of a reply as JSON, in bytes. Clients refuse messages of more than 16 MiB; a reply of this size
    /// keeps the event loop busy for some milliseconds.
    package static let mostBytes = 4 << 20
    /// The bounds that are tried in turn: the size of a string as JSON in bytes, and the number of elements of an array.
    private static let steps: [(string: Int, array: Int)] = [(1024, 500), (256, 100), (64, 10)]

    /// Returns the results as they are, if they are not too large. Otherwise returns them with shorter strings and
    /// arrays, and with `truncated`.
    package static func shortened(_ results: JSON) -> JSON {
        guard results.serialisedSize > mostBytes else { return results }
        var short = results
        for step in steps {
            short = results.shortened(stringsTo: step.string, arraysTo: step.array)
            if short.serialisedSize <= mostBytes { break }
        }
        guard var object = short.objectValue else { return short }
        object["truncated"] = true
        return .object(object)
    }

    /// How many of the elements fit into one reply: the first ones, and at least one, if there is one.
    ///
    /// - Parameter size: the most bytes that an element takes as JSON.
    package static func fitting<Elements: Sequence>(_ elements: Elements, _ size: (Elements.Element) -> Int) -> Int {
        var (count, bytes) = (0, 0)
        for element in elements {
            bytes += size(element) + 1
            if count > 0, bytes > mostBytes { break }
            count += 1
        }
        return count
    }

    /// A reply with the first entries of a list, as many as fit. `more` says whether there are others.
    package static func part(_ name: String, _ entries: [JSON]) -> JSON {
        let first = entries.prefix(fitting(entries, \.serialisedSize))
        var object = JSONObject()
        object.append(name, .array(Array(first)))
        object.append("more", first.count < entries.count ? true : .null)
        return .object(object)
    }

    /// A reply with a list of what apps have, such as transfers. What does not fit is left out of the apps with most,
    /// and `left_out` says how much that is.
    ///
    /// - Parameters:
    ///   - entries: the list's entries, each of which has a member `app`.
    ///   - keys: the names of texts that are shortened first, if the list is too long.
    ///   - lists: the names of lists that are emptied first, if the list is too long; `truncated` says whether they are.
    ///   - more: further results.
    package static func list(
        _ name: String,
        _ entries: [JSON],
        shortening keys: [String] = [],
        emptying lists: [String] = [],
        with more: JSONObject = JSONObject()
    ) -> JSON {
        var list = BoundedList(entries)
        list.shorten(keys, lists)
        let all = list.entries.count
        list.leaveOut()
        let leftOut = all - list.entries.count
        var object = JSONObject()
        object.append(name, .array(list.entries))
        for member in more.members { object.append(member.name, member.value) }
        if !lists.isEmpty { object.append("truncated", .bool(list.isShortened)) }
        object.append("left_out", leftOut > 0 ? .int(Int64(leftOut)) : .null)
        return .object(object)
    }
}

/// The entries of a list, and their sizes as JSON in bytes.
private struct BoundedList {
    private(set) var entries: [JSON]
    private var sizes: [Int]
    /// Whether the entries have shorter texts, or are without some lists, because they were too large.
    private(set) var isShortened = false
    /// The maximum length of a shortened text, in characters.
    private static let longestText = 1024

    init(_ entries: [JSON]) {
        self.entries = entries
        sizes = entries.map { $0.serialisedSize + 1 }
    }

    private var excess: Int { sizes.reduce(0, +) - BoundedReply.mostBytes }

    /// Shortens the texts and empties the lists with these names, if the entries are too large.
    mutating func shorten(_ keys: [String], _ lists: [String]) {
        guard excess > 0, !(keys.isEmpty && lists.isEmpty) else { return }
        let short = entries.map { Self.shortened($0, keys, lists) }
        self = BoundedList(short)
        isShortened = true
    }

    /// Leaves out the last entries of the apps that have most, until the rest is small enough.
    mutating func leaveOut() {
        let excess = excess
        guard excess > 0 else { return }
        let names = entries.map { $0["app"]?.stringValue }
        var totals: [String?: Int64] = [:]
        for (name, size) in zip(names, sizes) { totals[name, default: 0] += Int64(size) }
        var surplus: [String?: Int64] = [:]
        for share in FairShares.surplus(totals.map { (app: $0.key, count: $0.value) }, excess: Int64(excess)) {
            surplus[share.app] = share.count
        }
        var kept: [JSON] = []
        for index in entries.indices.reversed() {
            if let rest = surplus[names[index]], rest > 0 {
                surplus[names[index]] = rest - Int64(sizes[index])
            } else {
                kept.append(entries[index])
            }
        }
        entries = kept.reversed()
    }

    private static func shortened(_ entry: JSON, _ keys: [String], _ lists: [String]) -> JSON {
        guard var object = entry.objectValue else { return entry }
        for key in keys {
            guard let text = object[key]?.stringValue, text.utf8.count > longestText else { continue }
            object[key] = .string(String(text.unicodeScalars.prefix(longestText)) + "…")
        }
        for list in lists where object[list] != nil { object[list] = [] }
        return .object(object)
    }
}
