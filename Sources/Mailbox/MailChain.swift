// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The apps that got a message before, and those that get it next if no app has handled it.
public struct MailChain: Sendable, Hashable {
    /// The apps that got the message, in order. The sender addressed the first one.
    public private(set) var asked: [String] = []
    /// The apps that get the message next, in order.
    public private(set) var waiting: [String] = []
    /// The sender that addressed the first app.
    public let sender: String
    /// The number of the message in the mailbox of the last app that got it, so that the message is not passed on
    /// twice.
    public private(set) var source: Int64 = 0

    /// The most apps in a chain.
    public static let limit = 8

    /// Creates the chain of a message that no app has got yet.
    public init(sender: String) { self.sender = sender }

    /// Records that an app got the message and did not handle it.
    ///
    /// - Parameters:
    ///   - source: the message's number in that app's mailbox.
    ///   - next: the apps to which that app passes the message on. Apps that got the message before are left out.
    public mutating func passedOver(_ app: String, source: Int64, next: [String]) {
        if !asked.contains(app) { asked.append(app) }
        self.source = source
        var known = Set(asked)
        waiting = (waiting + next).filter { known.insert($0).inserted }
        waiting = Array(waiting.prefix(max(0, Self.limit - asked.count)))
    }

    /// Removes and returns the next app; nil at the end of the chain.
    public mutating func takeNext() -> String? { waiting.isEmpty ? nil : waiting.removeFirst() }

    /// The chain in the form in which it is stored.
    public var json: JSON {
        [
            "asked": .strings(asked), "waiting": .strings(waiting), "sender": .string(sender), "source": .int(source),
        ]
    }

    /// Reads a stored chain; nil if the JSON is not a chain.
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
