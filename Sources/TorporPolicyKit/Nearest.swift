// SPDX-License-Identifier: Apache-2.0

/// Finds the name that a user probably meant.
public enum Nearest {
    /// The closest of the names, if one is close enough.
    public static func name(to text: String, among names: [String]) -> String? {
        let wanted = Array(text.lowercased().utf8)
        guard wanted.count >= 2, wanted.count <= 64 else { return nil }
        let bound = max(1, wanted.count / 3)
        return names.map { (distance(wanted, Array($0.lowercased().utf8)), $0) }
            .filter { $0.0 <= bound }
            .min { $0 < $1 }?.1
    }

    /// The edit distance: the number of insertions, deletions, replacements and swaps of neighbours.
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var rows = [Array(0...right.count)]
        for (i, byte) in left.enumerated() {
            var row = [i + 1]
            for (j, other) in right.enumerated() {
                var best = min(rows[i][j] + (byte == other ? 0 : 1), rows[i][j + 1] + 1, row[j] + 1)
                if i > 0, j > 0, byte == right[j - 1], left[i - 1] == other { best = min(best, rows[i - 1][j - 1] + 1) }
                row.append(best)
            }
            rows.append(row)
        }
        return rows[left.count][right.count]
    }
}
