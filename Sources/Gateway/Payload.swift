// SPDX-License-Identifier: Apache-2.0

public import Varlink
import WireText

/// What the bytes of a message say.
public enum Payload {
    /// What is known of the bytes.
    public enum Kind: Sendable, Hashable {
        /// They are JSON, or not taken.
        case json
        /// They are text.
        case text
        /// They are neither.
        case binary
        /// Nothing is: JSON where they are that, else text where they are that.
        case unknown

        /// That of the header `Content-Type`.
        public init(contentType: String?) {
            let kind = (contentType ?? "").prefix { $0 != ";" }.lowercased().filter { $0 != " " }
            switch kind {
            case "application/json": self = .json
            case _ where kind.hasSuffix("+json"): self = .json
            case "application/octet-stream": self = .binary
            // What curl --data says of anything.
            case "", "application/x-www-form-urlencoded": self = .unknown
            case _ where kind.hasPrefix("text/"): self = .text
            default: self = .binary
            }
        }
    }

    /// Bytes as JSON: themselves, a string, or `{"base64": "…"}`. No bytes are `null`.
    ///
    /// - Throws: ``JSONError`` for what must be JSON and is not.
    public static func read(_ bytes: [UInt8], as kind: Kind) throws(JSONError) -> JSON {
        guard !bytes.isEmpty else { return .null }
        switch kind {
        case .json: return try JSON.parse(bytes)
        case .text: return text(bytes) ?? binary(bytes)
        case .binary: return binary(bytes)
        case .unknown: return (try? JSON.parse(bytes)) ?? text(bytes) ?? binary(bytes)
        }
    }

    private static func text(_ bytes: [UInt8]) -> JSON? { String(validWire: bytes).map { .string($0) } }

    private static func binary(_ bytes: [UInt8]) -> JSON { ["base64": .string(Base64.encode(bytes))] }

    /// Whether a payload says that there is something to fetch: `{"aps": {"content-available": 1}}`.
    public static func saysContentAvailable(_ payload: JSON) -> Bool {
        guard let value = payload["aps"]?["content-available"] else { return false }
        return value.boolValue ?? (value.intValue == 1)
    }

    /// Whether the header `Content-Available` says so; nil where it says nothing.
    public static func saysContentAvailable(header: String?) -> Bool? {
        switch header?.lowercased().filter({ $0 != " " }) {
        case "1", "true": true
        case "0", "false": false
        default: nil
        }
    }
}
