// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
package import Testing
package import TorporAPI
import Varlink

/// Apps whose snapshot a command takes, and what it came to.
package enum Pictured {
    /// An unaware app; `snapshot` follows.
    package static let head = """
        [apps.web]
        exec = ["/bin/sleep", "1000"]

        """

    /// The smallest picture there is: one pixel in PNG.
    package static let png: [UInt8] =
        Base64.decode(
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
                + "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
        ) ?? []

    /// `snapshot` as a shell's command.
    package static func shell(_ script: String, deadline: String = "5s") -> String {
        let quoted = script.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\"", with: "\\\"")
        return "snapshot = { command = [\"/bin/sh\", \"-c\", \"\(quoted)\"], deadline = \"\(deadline)\" }\n"
    }
}

extension Daemon {
    /// The snapshot of an app, part by part; nil where there is none.
    package func snapshot(_ app: String = "web") throws -> (info: SnapshotInfo, data: [UInt8])? {
        let whole = try SnapshotPart.whole { try SnapshotPart(json: call(.snapshot(app: app, offset: $0))) }
        return whole.snapshot.map { ($0, whole.data) }
    }

    /// As text.
    package func snapshotText(_ app: String = "web") throws -> String? {
        try snapshot(app).map { String(decoding: $0.data, as: UTF8.self) }
    }

    /// Waits until the snapshot of an app is that text.
    package func waitForSnapshot(
        _ text: String,
        of app: String = "web",
        at location: SourceLocation = #_sourceLocation
    ) throws {
        try eventually("the snapshot of \(app) is \(text)", at: location) { try snapshotText(app) == text }
    }

    /// The files that are kept of an app.
    package func snapshotFiles(_ app: String = "web") -> [String] {
        ((try? File.list(directory + "/s/snapshots/" + app)) ?? []).sorted()
    }

    /// Why there was none, as the events say it, in their order.
    package func refusedSnapshots(_ app: String = "web") throws -> [String] {
        try events(app).map(\.text).filter { $0.hasPrefix("gave no snapshot: ") }.map { String($0.dropFirst(18)) }
    }
}
