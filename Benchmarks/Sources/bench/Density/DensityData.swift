// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The apps' data set: records with names and texts of invented words, the same in every run.
enum DensityData {
    /// As many as the largest app loads (density/service.c).
    static let records = 60_000

    static func write(to path: String) throws {
        var state: UInt64 = 7
        func random(_ count: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int((state >> 33) % UInt64(count))
        }
        let syllables = "ka to mi ren sol da vel or an ti ber lo shi qua fen gar pol ne ru ast".split(separator: " ")
        let words = (0..<3_000).map { _ in
            (0..<(2 + random(3))).map { _ in syllables[random(syllables.count)] }.joined()
        }
        func text(_ count: Int) -> String { (0..<count).map { _ in words[random(words.count)] }.joined(separator: " ") }
        var lines = ""
        for id in 0..<records {
            let name = text(2).prefix(38)
            lines += "{\"id\":\(id),\"name\":\"\(name)\",\"mail\":\"\(text(1))@\(text(1)).example\","
            lines += "\"price\":\(random(100_000)).5,\"text\":\"\(text(14))\",\"expires\":86400,\"seen\":0}\n"
        }
        try lines.write(toFile: path, atomically: false, encoding: .utf8)
    }
}
