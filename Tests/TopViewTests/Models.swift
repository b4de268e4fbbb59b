// SPDX-License-Identifier: Apache-2.0

import TopView
import TorporAPI

/// Models as a supervisor would make them.
enum Models {
    static let start: Int64 = 1_800_000_000_000_000

    static func app(
        _ name: String,
        _ state: String = "active",
        pid: Int32? = 100,
        memory: Int64? = 10 << 20,
        cpu: Double? = 1,
        failed: Bool = false
    ) -> AppSummary {
        let isUp = state != "not-running"
        return AppSummary(
            name: name,
            state: state,
            goal: state,
            pid: isUp ? pid : nil,
            incarnation: 1,
            uptime: isUp ? 62 : nil,
            failed: failed,
            memoryBytes: isUp ? memory : nil,
            cpuSeconds: isUp ? cpu : nil
        )
    }

    /// One app in each state.
    static let fleet: [AppSummary] = [
        app("web", "active", memory: 61 << 20),
        app("player", "inactive"),
        app("search", "background", memory: 223 << 20),
        app("mail", "suspended"),
        app("notes", "not-running"),
        app("thumbs", "not-running", failed: true),
    ]

    static func model(_ apps: [AppSummary] = fleet, columns: Int = 80, rows: Int = 24) -> TopModel {
        var model = TopModel()
        model.host = "vm"
        model.now = start
        model.size = .init(columns: columns, rows: rows)
        model.take(supervisor: SupervisorInfo(version: "0.1.0", instance: 1, pid: 7, apps: Int64(apps.count)))
        model.take(list: apps, asked: start)
        return model
    }

    static func event(
        _ sequence: Int64,
        _ app: String?,
        _ kind: String,
        at: Int64,
        from: String? = nil,
        to: String? = nil,
        text: String,
        reason: String? = nil
    ) -> EventRecord {
        var event = EventRecord(at: at, app: app, kind: kind, from: from, to: to, text: text, reason: reason)
        event.sequence = sequence
        return event
    }

    static func became(_ sequence: Int64, _ app: String, _ state: String, at: Int64, from: String? = nil) -> EventRecord
    {
        event(sequence, app, "state", at: at, from: from, to: state, text: "is \(state)")
    }
}

extension StyledGrid {
    var lines: [String] { (0..<rows).map { text(ofRow: $0) } }

    /// The row that begins with an app's name.
    func line(of app: String) -> String? { lines.first { $0.dropFirst().hasPrefix(app + " ") } }
}
