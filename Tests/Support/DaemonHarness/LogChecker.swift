// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux

/// Judges one app's log: every numbered line exactly once, in order, and nothing else.
///
/// A line is the log's time stamp and then what the app wrote: `APP INCARNATION VOICE NUMBER padding.` Each incarnation
/// counts each of its voices from 1, and an incarnation writes only when the one before it is gone.
package struct LogChecker {
    /// One counting of lines: a process of an incarnation, or its standard error.
    package struct Voice: Hashable, CustomStringConvertible {
        package var incarnation: UInt64
        package var letter: Character
        package var description: String { "\(incarnation) \(letter)" }

        package init(incarnation: UInt64, letter: Character) {
            self.incarnation = incarnation
            self.letter = letter
        }
    }

    package let app: String
    /// The last number of each voice that was read.
    package private(set) var last: [Voice: UInt64] = [:]
    /// What is wrong, the first few in full.
    package private(set) var problems: [String] = []
    /// All lines that were read.
    package private(set) var lines = 0
    private var incarnation: UInt64 = 0
    /// The end of what was taken, up to the next newline.
    private var rest: [UInt8] = []

    package init(app: String) { self.app = app }

    /// Takes in what was appended to the log.
    package mutating func take(_ bytes: [UInt8]) {
        rest += bytes
        var start = 0
        // By pointer: these are megabytes, and the tests are built without optimisation.
        rest.withUnsafeBytes { whole in
            guard let base = whole.baseAddress else { return }
            while let found = memchr(base + start, 10, whole.count - start) {
                let end = UnsafeRawPointer(found) - base
                take(line: UnsafeRawBufferPointer(rebasing: whole[start..<end]))
                start = end + 1
            }
        }
        rest.removeFirst(start)
    }

    /// Holds the log against what a process says that it wrote. An ended one is known exactly, except for the one line
    /// that it was writing when it was ended; of a living one everything up to `accepted` must be there.
    ///
    /// - Returns: how many lines are missing at the end.
    package mutating func missing(_ voice: Voice, accepted: UInt64, attempted: UInt64) -> UInt64 {
        let last = last[voice] ?? 0
        if last > attempted {
            report("\(app) \(voice): line \(last) was never written, only \(attempted)")
        }
        return accepted > last ? accepted - last : 0
    }

    package mutating func report(_ problem: String) {
        if problems.count < 20 { problems.append(problem) }
    }

    private mutating func take(line: UnsafeRawBufferPointer) {
        lines += 1
        guard let (voice, number) = parse(line) else {
            return report("\(app): not a whole line of it: \(String(decoding: line.prefix(200), as: UTF8.self))")
        }
        let before = last[voice] ?? 0
        if voice.incarnation < incarnation {
            report("\(app) \(voice): line \(number) stands behind lines of incarnation \(incarnation)")
        }
        incarnation = max(incarnation, voice.incarnation)
        if number == before + 1 {
            last[voice] = number
        } else if number <= before {
            report("\(app) \(voice): line \(number) again, after \(before)")
        } else {
            report("\(app) \(voice): line \(number) after \(before), \(number - before - 1) are missing")
            last[voice] = number
        }
    }

    private func parse(_ line: UnsafeRawBufferPointer) -> (Voice, UInt64)? {
        let stamp = TimeStamp.length
        guard let base = line.baseAddress, line.count > stamp + 8, line[line.count - 1] == UInt8(ascii: "."),
            line[10] == UInt8(ascii: "T"), line[stamp - 1] == UInt8(ascii: "Z"), line[stamp] == UInt8(ascii: " ")
        else { return nil }
        var index = stamp + 1
        func word() -> Range<Int>? {
            let start = index
            while index < line.count, line[index] != UInt8(ascii: " ") { index += 1 }
            guard index < line.count, index > start else { return nil }
            index += 1
            return start..<(index - 1)
        }
        guard let name = word(), let incarnation = word(), let voice = word(), let count = word(), voice.count == 1,
            name.count == app.utf8.count, memcmp(base + name.lowerBound, app, name.count) == 0,
            let incarnation = Self.number(line, incarnation), let number = Self.number(line, count)
        else { return nil }
        // What is left is padding of one letter, and the full stop.
        let padding = line.count - 1 - index
        let letter = Int(number % 26)
        guard padding <= Self.longestPadding,
            Self.paddings[letter].withUnsafeBytes({ memcmp(base + index, $0.baseAddress ?? base, padding) }) == 0
        else { return nil }
        let letterOfVoice = Character(UnicodeScalar(line[voice.lowerBound]))
        return (Voice(incarnation: incarnation, letter: letterOfVoice), number)
    }

    private static let longestPadding = 2048
    private static let paddings = (0..<26).map { [UInt8](repeating: UInt8(ascii: "a") + $0, count: longestPadding) }

    private static func number(_ line: UnsafeRawBufferPointer, _ range: Range<Int>) -> UInt64? {
        guard range.count < 19 else { return nil }
        var value: UInt64 = 0
        for index in range {
            let digit = line[index]
            guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
            value = value * 10 + UInt64(digit - UInt8(ascii: "0"))
        }
        return value
    }
}
