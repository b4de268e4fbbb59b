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
    /// Whether the entries are without the lists that were to be emptied.
    private(set) var isEmptied = false
    private let most: Int

    /// Creates a list of entries, each of which has a member `app`.
    ///
    /// - Parameters:
    ///   - keys: the names of texts that are shortened first, if the list is too long.
    ///   - lists: the names of lists that are emptied first, if the list is too long.
    ///   - most: the maximum size of the list as JSON, in bytes.
    init(
        _ entries: [JSON],
        shortening keys: [String] = [],
        emptying lists: [String] = [],
        most: Int = mostBytes
    ) {
        self.entries = entries
        self.most = most
        var sizes = entries.map { $0.serialisedSize + 1 }
        guard sizes.reduce(0, +) > most else { return }
        if !keys.isEmpty || !lists.isEmpty {
            self.entries = entries.map { Self.shortened($0, keys, lists) }
            isEmptied = !lists.isEmpty
            sizes = self.entries.map { $0.serialisedSize + 1 }
        }
        leaveOut(sizes)
    }

    /// Leaves out the last entries of the apps that have most, until the rest is short enough.
    private mutating func leaveOut(_ sizes: [Int]) {
        let excess = sizes.reduce(0, +) - most
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
