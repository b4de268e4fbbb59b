// SPDX-License-Identifier: Apache-2.0

public import Varlink
import WireText

/// Converts the bytes of a message to JSON.
public enum Payload {
    /// What the sender declares about the type of the bytes.
    public enum Kind: Sendable, Hashable {
        /// The bytes are JSON; anything else is an error.
        case json
        /// The bytes are text.
        case text
        /// The bytes are binary data.
        case binary
        /// The sender declares nothing: the bytes may be JSON, text or binary data.
        case unknown

        /// Determines the type from the header `Content-Type`.
        public init(contentType: String?) {
            let kind = (contentType ?? "").prefix { $0 != ";" }.lowercased().filter { $0 != " " }
            switch kind {
            case "application/json": self = .json
            case _ where kind.hasSuffix("+json"): self = .json
            case "application/octet-stream": self = .binary
            // curl --data sends this type for any data.
            case "", "application/x-www-form-urlencoded": self = .unknown
            case _ where kind.hasPrefix("text/"): self = .text
            default: self = .binary
            }
        }
    }

    /// Converts the bytes to JSON: they are parsed, or become a string or `{"base64": "…"}`. An empty array becomes
    /// `null`.
    ///
    /// - Throws: ``JSONError`` if the kind is `json` and the bytes are not JSON.
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

    /// Whether a payload contains `{"aps": {"content-available": 1}}`, which means that there is new content to
    /// fetch.
    public static func saysContentAvailable(_ payload: JSON) -> Bool {
        guard let value = payload["aps"]?["content-available"] else { return false }
        return value.boolValue ?? (value.intValue == 1)
    }

    /// Parses the header `Content-Available`; nil if there is none.
    public static func saysContentAvailable(header: String?) -> Bool? {
        switch header?.lowercased().filter({ $0 != " " }) {
        case "1", "true": true
        case "0", "false": false
        default: nil
        }
    }
}
