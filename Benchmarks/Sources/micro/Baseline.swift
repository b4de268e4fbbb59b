// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The recorded instruction counts, by name.
struct Baseline {
    /// A larger change is a regression, or a gain to record.
    static let tolerance = 0.05

    let values: [String: Double]

    /// Reads the file; empty if there is none.
    init(file: String) {
        let data = FileManager.default.contents(atPath: file) ?? Data()
        values = (try? JSONDecoder().decode([String: Double].self, from: data)) ?? [:]
    }

    /// Writes the file, and keeps counts that this run has not measured.
    static func write(_ results: [String: Double], to file: String) {
        let all = Baseline(file: file).values.merging(results) { $1 }
        let lines = all.sorted { $0.key < $1.key }.map { "  \"\($0.key)\": \(Int($0.value.rounded()))" }
        let text = "{\n" + lines.joined(separator: ",\n") + "\n}\n"
        do {
            try text.write(toFile: file, atomically: true, encoding: .utf8)
        } catch {
            FileHandle.standardError.write(Data("micro: cannot write \(file): \(error.localizedDescription)\n".utf8))
        }
    }
}

/// The table, printed line by line as counts arrive.
final class MicroReport {
    private(set) var results: [String: Double] = [:]
    private(set) var hasRegressed = false
    private let baseline: Baseline?

    init(baseline: Baseline?) {
        self.baseline = baseline
        print("instructions for each operation, in user mode")
    }

    /// Counts and prints a line. A failure to count is printed, but is no regression.
    func add(_ name: String, _ what: String, _ count: () throws -> Double) {
        do {
            let value = try count()
            results[name] = value
            print("\(pad(name, 18))\(pad(grouped(value), 12, right: true))  \(compared(name, value))\(what)")
        } catch {
            print("\(pad(name, 18))\(pad("-", 12, right: true))  could not be counted: \(error)")
        }
    }

    /// Unbuffered, since counting takes a while.
    private func print(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

    /// Prints the summary.
    func finish() {
        guard baseline != nil else { return }
        let limit = Int(Baseline.tolerance * 100)
        print(hasRegressed ? "more than \(limit) % above the baseline: see the lines with an !" : "no regression")
    }

    private func compared(_ name: String, _ value: Double) -> String {
        guard let baseline else { return "" }
        guard let before = baseline.values[name], before > 0 else { return "      new  " }
        let change = value / before - 1
        let isWorse = change > Baseline.tolerance
        if isWorse { hasRegressed = true }
        return String(format: "%+6.1f %%%@  ", change * 100, isWorse ? "!" : " ")
    }

    private func pad(_ text: String, _ width: Int, right: Bool = false) -> String {
        let space = String(repeating: " ", count: max(0, width - text.count))
        return right ? space + text : text + space
    }

    private func grouped(_ value: Double) -> String {
        var digits = String(Int(value.rounded()))
        var end = digits.count - 3
        while end > 0 {
            digits.insert(" ", at: digits.index(digits.startIndex, offsetBy: end))
            end -= 3
        }
        return digits
    }
}
