// SPDX-License-Identifier: Apache-2.0

import Linux
package import TorporAPI

/// The memory of the machine and of apps, and what would be done under memory pressure.
package struct MemoryPage {
    private let memory: MemoryStatus

    package init(_ memory: MemoryStatus) { self.memory = memory }

    // MARK: Who has how much

    /// The machine, then each app's memory and its place in the order of eviction.
    package var text: String {
        guard !memory.apps.isEmpty else { return head + "\nno app runs\n" }
        let places = places
        var table = Table(["APP", "STATE", "OWN", "SWAP", "LIMIT", "PRIORITY", "NEXT"], rightAligned: [2, 3, 4, 5])
        for app in memory.apps {
            table.append([
                .init(app.app, .bold), .init(app.state, Terminal.colour(ofState: app.state)),
                .init(Times.memory(bytes: app.residentBytes)),
                .init(app.swappedBytes == 0 ? "-" : Times.memory(bytes: app.swappedBytes)),
                .init(app.limitBytes.map { Times.memory(bytes: $0) } ?? "-"), .init("\(app.priority)"),
                .init(Self.next(app, places[app.app])),
            ])
        }
        return head + "\n" + table.text
    }

    /// Each app's place in the order of eviction, from 1 on.
    private var places: [String: Int] {
        var places: [String: Int] = [:]
        for step in memory.steps where Self.isEnding(step) {
            for app in step.apps where places[app] == nil { places[app] = places.count + 1 }
        }
        return places
    }

    /// The text of the column NEXT: `1, without notice`, or what protects the app.
    private static func next(_ app: AppMemory, _ place: Int?) -> String {
        if let place { return "\(place), " + (app.endsAtOnce ? "without notice" : "with notice and a grace") }
        return app.protection.map { "no: \($0)" } ?? "-"
    }

    private static func isEnding(_ step: MemoryStep) -> Bool { step.rung == "evict" || step.rung.hasPrefix("end-") }

    // MARK: Step by step

    /// All steps that would be taken under memory pressure.
    package var rehearsal: String {
        guard !memory.steps.isEmpty else {
            return head + "\nnothing would be done: no running app can be warned, paged out or ended\n"
        }
        var table = Table(["", "STEP", "APP", "FREES", "WHY"], rightAligned: [0, 3])
        for (index, step) in memory.steps.enumerated() {
            table.append([
                .init("\(index + 1)"), .init(step.rung, Self.colour(step)), .init(Self.names(step.apps), .bold),
                .init(step.bytes.map { Times.memory(bytes: $0) } ?? "-"), .init(step.why),
            ])
        }
        return head + "\na rehearsal: each step would follow only if those before it did not help:\n\n" + table.text
    }

    private static func names(_ apps: [String]) -> String {
        guard apps.count > 4 else { return apps.joined(separator: ", ") }
        return apps.prefix(3).joined(separator: ", ") + " and \(apps.count - 3) more"
    }

    private static func colour(_ step: MemoryStep) -> Terminal.Colour? {
        if step.rung == "evict" { return .yellow }
        return isEnding(step) ? .red : nil
    }

    // MARK: The machine

    private var head: String {
        var lines = [("memory", machine), ("swap", swap), ("pressure", pressure), ("order", order)]
        if let trouble = memory.trouble {
            lines.append(("trouble", Terminal.coloured(Terminal.harmless(trouble), .red)))
        }
        let width = lines.map(\.0.count).max() ?? 0
        return lines.map { name, value in
            "\(name): " + String(repeating: " ", count: width - name.count)
                + Terminal.wrapped(value, behind: width + 2) + "\n"
        }.joined()
    }

    private var machine: String {
        let level = Terminal.coloured("level \(memory.level)", colourOfLevel)
        return "\(Times.memory(bytes: memory.totalBytes)), \(Times.memory(bytes: memory.availableBytes)) available"
            + part(memory.availableBytes, of: memory.totalBytes) + ", " + level
    }

    private var colourOfLevel: Terminal.Colour {
        switch memory.level {
        case "none": .green
        case "warning": .yellow
        default: .red
        }
    }

    private var swap: String {
        guard memory.swapTotalBytes > 0 else {
            return "none: nothing can be paged out (‘torpor doctor’ says how to add swap)"
        }
        return "\(Times.memory(bytes: memory.swapTotalBytes)), \(Times.memory(bytes: memory.swapFreeBytes)) free"
            + part(memory.swapFreeBytes, of: memory.swapTotalBytes)
    }

    private var pressure: String {
        guard let some = memory.somePercent else { return "unknown: the kernel does not report it (boot with psi=1)" }
        let full = memory.fullPercent.map { ", all work for \(Self.percent($0))" } ?? ""
        return "some work waited for memory for \(Self.percent(some)) of the last 10 s\(full)"
    }

    private var order: String {
        if let policy = memory.policy { return "as the policy \(Terminal.harmless(policy)) says" }
        return "by state, then lower priority, more memory, longer unused"
    }

    private func part(_ bytes: Int64, of total: Int64) -> String {
        total > 0 ? " (\(Self.percent(Double(bytes) / Double(total) * 100)))" : ""
    }

    private static func percent(_ value: Double) -> String {
        guard value.isFinite, abs(value) < 1e6 else { return "-" }
        return "\((value * 10).rounded() / 10) %"
    }
}
