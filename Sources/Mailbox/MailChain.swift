// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// Who was told of something before, and who is still to be told: what an app does not handle goes on to the next.
public struct MailChain: Sendable, Hashable {
    /// The apps that were told, the first first: it was sent to that one.
    public private(set) var asked: [String] = []
    /// The apps that are to be told next, the first first.
    public private(set) var waiting: [String] = []
    /// Who sent it to the first.
    public let sender: String
    /// The number that it had in the mailbox of the last that was told: it is passed on from there once.
    public private(set) var source: Int64 = 0

    /// So many apps are told at most.
    public static let limit = 8

    /// One of which nobody was told yet.
    public init(sender: String) { self.sender = sender }

    /// An app was told and did not handle it.
    ///
    /// - Parameters:
    ///   - source: the number that it had there.
    ///   - next: whom that app passes it on to. None is told twice.
    public mutating func passedOver(_ app: String, source: Int64, next: [String]) {
        if !asked.contains(app) { asked.append(app) }
        self.source = source
        var known = Set(asked)
        waiting = (waiting + next).filter { known.insert($0).inserted }
        waiting = Array(waiting.prefix(max(0, Self.limit - asked.count)))
    }

    /// Takes out who is to be told next; nil at the end of the chain.
    public mutating func takeNext() -> String? { waiting.isEmpty ? nil : waiting.removeFirst() }

    /// It as it is kept.
    public var json: JSON {
        [
            "asked": .strings(asked), "waiting": .strings(waiting), "sender": .string(sender), "source": .int(source),
        ]
    }

    /// Reads what ``json`` was; nil for anything else.
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
