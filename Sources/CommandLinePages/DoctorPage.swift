// SPDX-License-Identifier: Apache-2.0

import Linux
package import TorporAPI

/// The machine's features, for people: first the missing features with their effects, each cause only once, then the
/// others.
package struct DoctorPage {
    private let checks: [DoctorCheck]

    package init(_ checks: [DoctorCheck]) { self.checks = checks }

    package var text: String {
        let missing = findings
        var text = ""
        for finding in missing {
            text += Terminal.coloured("missing ", .yellow) + finding.title + "\n"
            for line in finding.lines {
                text += "        " + Terminal.wrapped(Terminal.harmless(line), behind: 8) + "\n"
            }
        }
        for check in checks where check.ok { text += Terminal.coloured("ok      ", .green) + Self.title(check) + "\n" }
        let count = missing.count
        guard count > 0 else { return text + "nothing is missing\n" }
        return text
            + "\(count) \(count == 1 ? "thing is" : "things are") missing\n"
    }

    private struct Finding {
        var title: String
        var lines: [String]
    }

    /// The text between the cause and the effect in a check's sentence.
    private static let cost = ". Without it "

    /// The features that are missing. Controllers missing for the same reason are merged.
    private var findings: [Finding] {
        var findings: [Finding] = []
        var places: [String: Int] = [:]
        for check in checks where !check.ok {
            guard let (controller, cause, cost) = Self.controller(check) else {
                let lines = (check.message ?? "").split(separator: "\n").map(String.init)
                findings.append(Finding(title: Self.title(check), lines: lines))
                continue
            }
            let line = "without \(controller), \(cost)"
            if let place = places[cause] {
                findings[place].title += ", " + controller
                findings[place].lines.append(line)
            } else {
                places[cause] = findings.count
                findings.append(Finding(title: "cgroup controllers: " + controller, lines: [cause, line]))
            }
        }
        return findings
    }

    /// For a check of a controller: its name, why it is missing, and the effect.
    private static func controller(_ check: DoctorCheck) -> (name: String, cause: String, cost: String)? {
        let suffix = " controller"
        guard check.name.hasSuffix(suffix), let message = check.message, let range = message.firstRange(of: cost)
        else { return nil }
        return (
            String(check.name.dropLast(suffix.count)), String(message[..<range.lowerBound]),
            String(message[range.upperBound...])
        )
    }

    private static func title(_ check: DoctorCheck) -> String {
        guard let value = check.value, !value.isEmpty else { return check.name }
        return "\(check.name): \(Terminal.harmless(value))"
    }
}
