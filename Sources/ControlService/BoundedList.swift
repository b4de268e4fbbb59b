// SPDX-License-Identifier: Apache-2.0

import Store
import Varlink

/// A list of what apps have, such as transfers, in a length that clients can read: they refuse messages of more than 16
/// MiB. The apps themselves determine how long the list is, so what does not fit is left out of the apps with most.
struct BoundedList {
    /// The maximum size of the list as JSON, in bytes.
    static let mostBytes = 12 << 20
    /// The maximum length of a shortened text, in characters.
    private static let longestText = 1024

    private(set) var entries: [JSON]
    private(set) var leftOut: Int64?

    /// Creates a list of entries, each of which has a member `app`.
    ///
    /// - Parameter keys: the names of texts that are shortened first, if the list is too long.
    init(_ entries: [JSON], shortening keys: [String] = []) {
        self.entries = entries
        // A byte of a text takes at most six bytes in JSON.
        guard entries.reduce(0, { $0 + Self.rawSize($1) }) > Self.mostBytes / 6 else { return }
        var sizes = entries.map { $0.serialised().count + 1 }
        guard sizes.reduce(0, +) > Self.mostBytes else { return }
        if !keys.isEmpty {
            self.entries = entries.map { Self.shortened($0, keys) }
            sizes = self.entries.map { $0.serialised().count + 1 }
        }
        leaveOut(sizes)
    }

    /// Leaves out the last entries of the apps that have most, until the rest is short enough.
    private mutating func leaveOut(_ sizes: [Int]) {
        let excess = sizes.reduce(0, +) - Self.mostBytes
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
        leftOut = Int64(entries.count - kept.count)
        entries = kept.reversed()
    }

    /// The reply with the list, and with further results.
    func reply(_ name: String, _ more: JSONObject = JSONObject()) -> JSON {
        var object = JSONObject()
        object.append(name, .array(entries))
        for member in more.members { object.append(member.name, member.value) }
        object.append("left_out", .optional(leftOut))
        return .object(object)
    }

    /// About how many bytes the value has, if no character needs an escape.
    private static func rawSize(_ json: JSON) -> Int {
        switch json {
        case .null, .bool: 5
        case .int, .double: 24
        case .string(let text): text.utf8.count + 2
        case .array(let elements): elements.reduce(2) { $0 + rawSize($1) + 1 }
        case .object(let object): object.members.reduce(2) { $0 + $1.name.utf8.count + rawSize($1.value) + 4 }
        }
    }

    private static func shortened(_ entry: JSON, _ keys: [String]) -> JSON {
        guard var object = entry.objectValue else { return entry }
        for key in keys {
            guard let text = object[key]?.stringValue, text.utf8.count > longestText else { continue }
            object[key] = .string(String(text.unicodeScalars.prefix(longestText)) + "…")
        }
        return .object(object)
    }
}
