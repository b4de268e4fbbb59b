// SPDX-License-Identifier: Apache-2.0

/// Names of processes as supervisord gives them, such as `web_01`, or `workers:web_01` with a group.
package enum ProcessName {
    /// The app for which the name of a process stands: the instance with the same number, or the app of that name. Nil
    /// if there is none.
    package static func app(for name: String, among names: [String]) -> String? {
        let name = name.split(separator: ":").last ?? ""
        if names.contains(String(name)) { return String(name) }
        guard let number = number(at: name) else { return nil }
        let whole = name.reversed().drop { $0.isASCII && $0.isNumber }
        let stem = String((whole.first.map { "_-.".contains($0) } == true ? whole.dropFirst() : whole).reversed())
        return ["\(stem)@\(number)", stem].first { names.contains($0) }
    }

    /// Whether the name may be that of a process of supervisord, so that a search for its app makes sense.
    package static func isLikely(_ name: String) -> Bool { name.contains(":") || number(at: name[...]) != nil }

    /// Whether `other` is an instance with another number than that at the end of the name.
    package static func isOtherInstance(_ other: String, than name: String) -> Bool {
        guard other.contains("@"), let number = number(at: name[...]) else { return false }
        return Self.number(at: other[...]) != number
    }

    /// The number at the end of a name.
    private static func number(at name: Substring) -> Int? {
        Int(String(name.reversed().prefix { $0.isASCII && $0.isNumber }.reversed()))
    }
}
