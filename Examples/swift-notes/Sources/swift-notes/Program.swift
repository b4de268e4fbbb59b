// SPDX-License-Identifier: Apache-2.0

import Glibc
import TorporApp

@main
enum Program {
    static func main() async {
        let port = CommandLine.arguments.dropFirst().first.flatMap { UInt16($0) } ?? 7070
        do {
            try await TorporApp.run(Notebook(port: port))
        } catch {
            say("swift-notes: \(error)")
            exit(1)
        }
    }
}

/// Writes a line at once: an app may be stopped at any moment.
func say(_ text: String) {
    let line = Array((text + "\n").utf8)
    _ = write(1, line, line.count)
}
