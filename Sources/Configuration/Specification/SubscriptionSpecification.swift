// SPDX-License-Identifier: Apache-2.0

import TransferProtocol
import WireText

/// An entry of `subscriptions`: a network resource that torpord checks for changes while the app is suspended.
public struct SubscriptionSpecification: Sendable, Hashable {
    /// The subscription's name, which is also the name of the file with the resource's content.
    public var name = ""
    /// The http or https URL of the resource.
    public var url = ""
    /// The minimum interval between checks. The interval grows as long as the resource does not change.
    public var every = Duration.seconds(3_600)

    /// Creates a subscription without a name and a URL.
    public init() {}
}

extension SubscriptionSpecification: Written {
    var written: String? { "\(name): \(url), every \(Quantity.text(every))" }
}

/// Reads `subscriptions`.
enum SubscriptionReader {
    static let keys: [Key<SubscriptionSpecification>] = [
        .value("name", \.name, TimerReader.name),
        .value("url", \.url, url),
        .value("every", \.every, TimerReader.interval),
    ]

    /// The maximum number of subscriptions per app.
    private static let most = 64

    static func subscriptions(_ context: Context, _ node: Node) -> [SubscriptionSpecification]? {
        guard let found = Read.elements(context, node, of: "tables", subscription) else { return nil }
        guard found.count <= most else {
            context.error("has \(found.count) entries: at most \(most) are allowed", at: node.position)
            return nil
        }
        return Read.unique(context, node, found, by: \.name)
    }

    private static func subscription(_ context: Context, _ node: Node) -> SubscriptionSpecification? {
        guard case .table = node.value else {
            return context.expected("a table such as { name = \"news\", url = \"https://example.org/feed.xml\" }", node)
        }
        var subscription = SubscriptionSpecification()
        let given = Read.table(context, node, keys, into: &subscription)
        for key in ["name", "url"] where given[key] == nil { context.error("\(key) is missing", at: node.position) }
        return subscription
    }

    private static func url(_ context: Context, _ node: Node) -> String? {
        guard let text = Read.text(context, node) else { return nil }
        guard WebAddress(text) != nil, text.utf8.count <= 8192, text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else {
            context.error(
                // Do not quote the URL in the message, because it may contain a password.
                "is not an http or https URL without a user name: write one like "
                    + "\"https://example.org/feed.xml\"",
                at: node.position
            )
            return nil
        }
        return text
    }
}
