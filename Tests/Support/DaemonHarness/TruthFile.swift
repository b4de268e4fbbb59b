// SPDX-License-Identifier: Apache-2.0

import Linux

/// What one process of an app says that it did: a file that it maps, so that no death loses it.
/// The layout is `struct truth` of Tests/Support/torpor-test-app/test_app.h.
package struct TruthFile {
    package let app: String
    package let voice: LogChecker.Voice
    package let pid: Int32
    /// The line that was last begun.
    package let attempted: UInt64
    /// The line that write(2) last took whole.
    package let accepted: UInt64
    package let statusNumber: UInt64
    package let storedBack: UInt64
    /// What must never happen, in words.
    package let wrongs: [String]

    /// The name of a file is `APP.INCARNATION.VOICE`; another one is not a record of a process.
    package static func parse(name: String) -> (app: String, voice: LogChecker.Voice, again: Bool)? {
        let parts = name.split(separator: ".")
        guard parts.count == 3 || (parts.count == 4 && parts[3].hasPrefix("again")), let number = UInt64(parts[1]),
            parts[2].count == 1, let letter = parts[2].first
        else { return nil }
        return (String(parts[0]), LogChecker.Voice(incarnation: number, letter: letter), parts.count == 4)
    }

    /// Nil while it is being made.
    package init?(folder: String, name: String) {
        guard let (app, voice, _) = Self.parse(name: name),
            let bytes = try? File.read(folder + "/" + name), bytes.count >= 128,
            bytes.starts(with: "CHTRUTH1".utf8)
        else { return nil }
        func field(_ index: Int) -> UInt64 {
            bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self) }
        }
        self.app = app
        self.voice = voice
        pid = Int32(truncatingIfNeeded: field(1))
        attempted = field(2)
        accepted = field(3)
        statusNumber = field(14)
        storedBack = field(11)
        var wrongs: [String] = []
        func mustBeZero(_ index: Int, _ what: String) {
            if field(index) > 0 { wrongs.append("\(what) (\(field(index)) times, errno \(field(7)))") }
        }
        mustBeZero(4, "took SIGPIPE")
        mustBeZero(5, "saw EPIPE")
        mustBeZero(6, "could not write")
        // One that sent no more is blocked while it writes a line, or gets no processor.
        let (begun, written, beats) = (field(2), field(3), field(14))
        let done = "\(beats) heartbeats, \(begun) lines begun and \(written) written"
        mustBeZero(8, "was aborted by a watchdog, after \(done)")
        mustBeZero(10, "ran beside another incarnation")
        mustBeZero(12, "did not get its stored descriptor back")
        mustBeZero(13, "could not notify")
        self.wrongs = wrongs
    }
}
