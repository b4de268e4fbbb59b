// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The requests of one turn, from the file that density/load.c writes.
struct DensityRequests {
    /// Requests to one kind of app, hot or cold.
    struct Part {
        /// Response times in milliseconds, sorted.
        var times: [Double] = []
        /// Failed requests by result: refused, broken, late.
        var failures: [String: Int] = [:]

        var count: Int { times.count + failed }
        var failed: Int { failures.values.reduce(0, +) }

        /// The nearest rank; nil if there are no responses.
        func percentile(_ part: Double) -> Double? {
            times.isEmpty ? nil : times[max(0, Int((Double(times.count) * part).rounded(.up)) - 1)]
        }

        var failuresText: String { failures.sorted { $0.key < $1.key }.map { "\($1) \($0)" }.joined(separator: ", ") }
    }

    var hot = Part()
    var cold = Part()
    /// CPU time of the load generator.
    var cpu = 0.0

    /// Ignores requests that were due during the warm-up.
    init(file: String, warming: Int) throws {
        guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
            throw Trouble("the load generator has written nothing")
        }
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count == 2, words[0] == "cpu" { cpu = Double(words[1]) ?? 0 }
            guard words.count == 6, let due = Double(words[2]), let took = Double(words[3]) else { continue }
            guard due >= Double(warming) * 1e6 else { continue }
            let path = words[0] == "h" ? \DensityRequests.hot : \DensityRequests.cold
            if words[4] == "ok" {
                self[keyPath: path].times.append(took / 1_000)
            } else {
                self[keyPath: path].failures[String(words[4]), default: 0] += 1
            }
        }
        hot.times.sort()
        cold.times.sort()
        guard hot.count > 0 else { throw Trouble("the load generator has made no requests") }
    }
}
