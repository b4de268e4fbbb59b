// SPDX-License-Identifier: Apache-2.0

import Configuration
import Gateway
import GatewayConfiguration
import WireText

/// A subscription and what comes to it, with a newline between: pattern, app, topic, key, subject, payload. The first byte
/// says whose dialect it is.
enum GatewayRules: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        guard let first = bytes.first else { return }
        let dialect: SubjectPattern.Dialect = first % 2 == 0 ? .nats : .mqtt
        let lines = bytes.dropFirst().split(
            separator: UInt8(ascii: "\n"),
            maxSplits: 5,
            omittingEmptySubsequences: false
        )
        guard lines.count == 6 else { return }
        let texts = lines.map { String(wire: $0) }
        _ = BrokerAddress(texts[0])
        guard let pattern = try? SubjectPattern(texts[0], dialect) else { return }
        let found = pattern.match(texts[4])
        try expect(found == Reference.match(texts[0], texts[4], dialect), "\(texts[0]) and \(texts[4]): \(found ?? [])")
        if let found {
            try expect(found.count == pattern.wildcards, "\(found.count) of \(pattern.wildcards) wildcards")
        }
        var subscription = GatewaySubscription()
        subscription.pattern = pattern
        guard let app = try? SubjectTemplate(texts[1], wildcards: pattern.wildcards) else { return }
        subscription.app = app
        subscription.topic = try? SubjectTemplate(texts[2], wildcards: pattern.wildcards)
        subscription.key = try? SubjectTemplate(texts[3], wildcards: pattern.wildcards)
        let push = try? subscription.push(
            subject: texts[4],
            bytes: Array(lines[5]),
            maxPayload: 4_096,
            sender: "fuzz"
        )
        guard let push else { return }
        try expect(GatewayNames.problem(app: push.app) == nil, "\(push.app) is no app")
        try expect(GatewayNames.problem(topic: push.topic) == nil, "\(push.topic) is no topic")
    }

    /// The same word by word, as it is explained.
    private enum Reference {
        static func match(_ pattern: String, _ subject: String, _ dialect: SubjectPattern.Dialect) -> [String]? {
            let separator: UInt8 = UInt8(ascii: dialect == .nats ? "." : "/")
            func words(_ text: String) -> [String] {
                text.utf8.split(separator: separator, omittingEmptySubsequences: false).map { String($0) ?? "" }
            }
            let (one, rest) = dialect == .nats ? ("*", ">") : ("+", "#")
            if dialect == .mqtt, subject.utf8.first == UInt8(ascii: "$"), let first = pattern.utf8.first,
                first == UInt8(ascii: "+") || first == UInt8(ascii: "#")
            {
                return nil
            }
            return match(words(pattern)[...], words(subject)[...], one, rest, dialect)
        }

        private static func match(
            _ pattern: ArraySlice<String>,
            _ subject: ArraySlice<String>,
            _ one: String,
            _ rest: String,
            _ dialect: SubjectPattern.Dialect
        ) -> [String]? {
            var (pattern, subject) = (pattern, subject)
            var found: [String] = []
            while let wanted = pattern.popFirst() {
                if wanted == rest {
                    guard dialect == .mqtt || !subject.isEmpty else { return nil }
                    return found + [subject.joined(separator: dialect == .nats ? "." : "/")]
                }
                guard let word = subject.popFirst() else { return nil }
                if wanted == one { found.append(word) } else if !wanted.utf8.elementsEqual(word.utf8) { return nil }
            }
            return subject.isEmpty ? found : nil
        }
    }
}
