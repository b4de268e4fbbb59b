// SPDX-License-Identifier: Apache-2.0

/// Finds the existing name that is most similar to a mistyped name, for a hint to the user.
public enum Nearest {
    /// The most similar of the names; nil if none is similar enough.
    ///
    /// - Parameter most: the largest number of edits. By default, one edit is allowed for every three bytes of the
    ///   text.
    public static func name(to text: String, among names: some Sequence<String>, within most: Int = .max) -> String? {
        search(text, among: names, within: most).name
    }

    /// `; did you mean "…"?`, or an empty string if no name is similar enough. While a configuration is read, use
    /// ``Context/hint(_:among:within:)``, which bounds the work of all searches together.
    package static func hint(_ text: String, among names: some Sequence<String>, within most: Int = .max) -> String {
        hint(name(to: text, among: names, within: most))
    }

    static func hint(_ name: String?) -> String { name.map { "; did you mean \(quoted($0))?" } ?? "" }

    /// What a search found, and its work.
    struct Result {
        var name: String?
        /// The steps that the search took: one for each pair of bytes that was compared, and some for each name.
        var steps = 0
    }

    /// About how many pairs of bytes are compared in the time that a name takes which is not compared.
    private static let stepsForName = 32

    static func search(_ text: String, among names: some Sequence<String>, within most: Int) -> Result {
        var result = Result()
        let wanted = Array(text.lowercased().utf8)
        guard !wanted.isEmpty, wanted.count <= 64 else { return result }
        let bound = min(most, wanted.count < 2 ? 0 : max(1, wanted.count / 3))
        var least = Int.max
        for name in names {
            let candidate = Array(name.lowercased().utf8)
            result.steps += stepsForName + candidate.count
            guard abs(candidate.count - wanted.count) <= bound else { continue }
            result.steps += wanted.count * candidate.count
            let distance = distance(wanted, candidate)
            guard distance <= bound else { continue }
            if let found = result.name, (least, found) <= (distance, name) { continue }
            (result.name, least) = (name, distance)
        }
        return result
    }

    /// The edit distance of two names: the number of insertions, deletions, replacements and swaps of neighbouring
    /// bytes.
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var beforeLast = [Int](repeating: 0, count: right.count + 1)
        var last = Array(0...right.count)
        var current = beforeLast
        for i in 1...max(1, left.count) where i <= left.count {
            current[0] = i
            for j in 1...max(1, right.count) where j <= right.count {
                let replaced = last[j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1)
                var best = min(replaced, last[j] + 1, current[j - 1] + 1)
                if i > 1, j > 1, left[i - 1] == right[j - 2], left[i - 2] == right[j - 1] {
                    best = min(best, beforeLast[j - 2] + 1)
                }
                current[j] = best
            }
            (beforeLast, last, current) = (last, current, beforeLast)
        }
        return last[right.count]
    }
}
