// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The apps that got a message before, and those that get it next if it is not handled.
public struct MailChain: Sendable, Hashable {
    /// The apps that got it, in order; it was sent to the first.
    public private(set) var asked: [String] = []
    /// The apps that get it next, in order.
    public private(set) var waiting: [String] = []
    /// The sender to the first app.
    public let sender: String
    /// Its number in the mailbox of the last app that got it: prevents passing it on twice.
    public private(set) var source: Int64 = 0

    /// The most apps in a chain.
    public static let limit = 8

    /// A chain of a message that no app got yet.
    public init(sender: String) { self.sender = sender }

    /// An app got the message and did not handle it.
    ///
    /// - Parameters:
    ///   - source: the message's number in that app's mailbox.
    ///   - next: the apps to which that app passes it on. No app gets it twice.
    public mutating func passedOver(_ app: String, source: Int64, next: [String]) {
        if !asked.contains(app) { asked.append(app) }
        self.source = source
        var known = Set(asked)
        waiting = (waiting + next).filter { known.insert($0).inserted }
        waiting = Array(waiting.prefix(max(0, Self.limit - asked.count)))
    }

    /// Removes and returns the next app; nil at the end of the chain.
    public mutating func takeNext() -> String? { waiting.isEmpty ? nil : waiting.removeFirst() }

    /// The stored form.
    public var json: JSON {
        [
            "asked": .strings(asked), "waiting": .strings(waiting), "sender": .string(sender), "source": .int(source),
        ]
    }

    /// Reads the stored form; nil for anything else.
    public init?(_ json: JSON) {
        guard let asked = json["asked"]?.arrayValue, let waiting = json["waiting"]?.arrayValue,
            let sender = json["sender"]?.stringValue, let source = json["source"]?.intValue
        else { return nil }
        self.asked = asked.compactMap(\.stringValue)
        self.waiting = waiting.compactMap(\.stringValue)
        self.sender = sender
        self.source = source
    }
}
