// SPDX-License-Identifier: Apache-2.0

/// What to know before an app's output goes to the journal.
enum JournalRemark {
    /// What to add where `log = "journal"` is suggested: a program such as nginx that opens `/dev/stderr` by its name
    /// cannot, since its output is a socket then (ENXIO), as under systemd. Empty if the command names no such file.
    static func exception(_ command: String) -> String {
        let files = ["/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/"]
        guard let file = files.first(where: { command.contains($0) }) else { return "" }
        return ", but its program could not open \(file) then, since the journal is a socket: log = \"file\" it is"
    }
}
