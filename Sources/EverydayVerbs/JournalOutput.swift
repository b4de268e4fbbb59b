// SPDX-License-Identifier: Apache-2.0

package import CommandLinePages
import Linux
package import TorporAPI
package import Varlink
import WireText

/// The output of an app with `log = "journal"`, read by running journalctl(1), because the format of the journal's
/// files is private to systemd.
package struct JournalOutput {
    package let place: JournalPlace
    /// Only lines from this time on are read, in microseconds since 1970; nil for no limit.
    package var since: Int64?
    package var until: Int64?
    package var grep: String?

    /// The ID of the user that the app runs as; nil if it is the supervisor's, or if there is no such user.
    private let account: UInt32?

    package init(_ place: JournalPlace) {
        self.place = place
        account = place.account.flatMap { Users.lookup($0)?.uid ?? UInt32($0) }
    }

    /// Lines of output, and the position in the journal at which to continue.
    package struct Page {
        package var lines: [LogLine] = []
        /// The journal's cursor of the newest entry that was read; nil if none was read.
        package var cursor: String?
    }

    // MARK: Reading

    /// Returns the last lines, the oldest first.
    ///
    /// - Parameters:
    ///   - patience: the time limit. When it is reached, the lines read so far are returned. Nil for no limit.
    ///   - isQuiet: whether to discard journalctl's messages.
    package func last(_ count: Int, patience: Duration? = nil, isQuiet: Bool = false) throws(Failure) -> Page {
        var page = Page()
        // Read backwards until there are enough lines of the app itself, because other programs' lines are skipped.
        try run(["--reverse"], patience: patience, isQuiet: isQuiet) { entry in
            page.cursor = page.cursor ?? entry["__CURSOR"]?.stringValue
            if page.lines.count < count, let line = line(entry) { page.lines.append(line) }
            return page.lines.count < count
        }
        page.lines.reverse()
        return page
    }

    /// Calls `show` with each line as it is read, the oldest first. Returns the cursor after which to continue.
    package func all(_ show: (LogLine) -> Bool) throws(Failure) -> String? {
        var cursor: String?
        try run([]) { entry in
            cursor = entry["__CURSOR"]?.stringValue ?? cursor
            return line(entry).map(show) ?? true
        }
        return cursor
    }

    /// Follows the output after an entry until `show` returns false.
    package func follow(after cursor: String?, _ show: (LogLine) -> Bool) throws(Failure) {
        try run(["--follow", "--no-tail"] + (cursor.map { ["--after-cursor=\($0)"] } ?? [])) { entry in
            line(entry).map(show) ?? true
        }
    }

    /// Converts an entry to a line; nil if the entry is not the app's or is not selected.
    package func line(_ entry: JSON) -> LogLine? {
        guard isOwn(entry), place.mayHave(entry, ofUser: account) else { return nil }
        let line = LogLine(at: entry["__REALTIME_TIMESTAMP"]?.stringValue.flatMap { Int64($0) }, text: Self.text(entry))
        if let at = line.at, at < since ?? .min || at >= until ?? .max { return nil }
        // Search for a substring of bytes and not for a pattern, as torpord does in log files.
        if let grep, !grep.isEmpty, !Self.contains(line.text, grep) { return nil }
        return line
    }

    /// Whether an entry may be from this supervisor's app. It is not if its unit belongs only to other supervisors,
    /// even if its identifier matches. An entry without a unit is accepted, because journald cannot find the unit of a
    /// process that has ended.
    private func isOwn(_ entry: JSON) -> Bool {
        let unitOfUser = entry["_SYSTEMD_USER_UNIT"]?.stringValue
        guard let unit = unitOfUser ?? entry["_SYSTEMD_UNIT"]?.stringValue,
            ["torpor-apps.", "torpor-apps-", "torpord.", "torpord@"].contains(where: unit.hasPrefix)
        else { return true }
        guard place.units.contains(unit), (unitOfUser != nil) == (place.user != nil) else { return false }
        let owner = entry["_SYSTEMD_OWNER_UID"]?.stringValue ?? entry["_UID"]?.stringValue
        return place.user == nil || owner == nil || owner == place.user.map(String.init)
    }

    /// The text of MESSAGE, which is a string, or an array of bytes if it is not UTF-8 or contains control
    /// characters.
    private static func text(_ entry: JSON) -> String {
        if let text = entry["MESSAGE"]?.stringValue { return text }
        let bytes = entry["MESSAGE"]?.arrayValue ?? []
        return String(wire: bytes.map { UInt8(truncatingIfNeeded: $0.intValue ?? 0x3f) })
    }

    private static func contains(_ text: String, _ part: String) -> Bool {
        let (text, part) = (Array(text.utf8), Array(part.utf8))
        guard text.count >= part.count else { return false }
        return (0...text.count - part.count).contains { text[$0...].starts(with: part) }
    }

    // MARK: journalctl

    /// The arguments for journalctl.
    package func arguments(_ more: [String]) -> [String] {
        var words = ["journalctl", "--output=json", "--all", "--no-pager"]
        words.append("--output-fields=" + (["MESSAGE"] + JournalPlace.fields).joined(separator: ","))
        words += more
        // journalctl gets whole seconds, which every version accepts. The exact limit is applied to the entries here.
        if let since { words.append("--since=@\(since / 1_000_000)") }
        if let until { words.append("--until=@\(until / 1_000_000 + 1)") }
        // Match only what the app wrote to its output stream: other programs can log under the same identifier.
        return words + ["_TRANSPORT=stdout", "SYSLOG_IDENTIFIER=\(place.identifier)"]
    }

    /// Runs journalctl and calls `take` with each entry until `take` returns false.
    private func run(
        _ more: [String],
        patience: Duration? = nil,
        isQuiet: Bool = false,
        _ take: (JSON) -> Bool
    ) throws(Failure) {
        guard let program = Self.program else {
            throw Failure(
                status: .failed,
                message: "the output of \(place.identifier) is in the journal, and journalctl, which reads it, is not "
                    + "on the PATH: install it (systemd)"
            )
        }
        do throws(Errno) {
            let (read, write) = try Descriptor.pipe()
            let nowhere = isQuiet ? try File.open("/dev/null", .write) : nil
            let child = try ChildProcess(
                program,
                arguments: arguments(more + (isQuiet ? ["--quiet"] : [])),
                environment: ThisProcess.environment,
                descriptors: [(there: 1, here: write.raw), (there: 2, here: nowhere?.raw ?? 2)]
            )
            write.close()
            let end = patience.map { Clock.monotonic() + $0 }
            var lines = LineReader()
            while true {
                if let end, try !Descriptor.wait(read.raw, timeout: max(.zero, end - Clock.monotonic())) {
                    return child.kill()
                }
                guard let bytes = try Descriptor.read(read.raw, maximum: 1 << 16), !bytes.isEmpty else { break }
                for line in lines.add(bytes) {
                    guard let entry = try? JSON.parse(line), entry["MESSAGE"] != nil else { continue }
                    if !take(entry) { return child.kill() }
                }
            }
            guard WaitStatus.exitCode(child.reap()) == 0 else {
                throw .ioError
            }
        } catch {
            throw Failure(
                status: .failed,
                message: "journalctl could not read the output of \(place.identifier) from the journal: see what "
                    + "‘\(place.command)’ says"
            )
        }
    }

    /// The path of journalctl, searched on the PATH like a shell does; nil if it is not found.
    private static var program: String? {
        (ThisProcess.environment("PATH") ?? "/usr/bin:/bin").split(separator: ":").map { $0 + "/journalctl" }
            .first(where: File.isExecutable)
    }
}

/// Splits bytes into lines.
package struct LineReader {
    private var rest: [UInt8] = []

    /// Adds bytes. Returns the lines that are complete now, without line breaks.
    package mutating func add(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        var parts = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        parts[0] = (rest + parts[0])[...]
        rest = Array(parts.removeLast())
        return parts
    }
}
