// SPDX-License-Identifier: Apache-2.0

import WireText

/// The parts of a response's head that transfers need, parsed line by line. A status line begins the next head, and
/// discards the previous one.
public struct ResponseHead: Hashable, Sendable {
    /// The longest value kept, in bytes; a field with a longer value counts as absent.
    public static let longestValue = 8 << 10
    /// The most bytes that all heads of one request may have together.
    public static let most = 256 << 10

    /// The status code; 0 before the first line.
    public private(set) var status = 0
    /// Whether the empty line that ends a final response's head has arrived. libcurl reports success for a connection
    /// that closes before this line, although head and body are then incomplete.
    public private(set) var isComplete = false
    /// Bytes of all lines, including earlier heads.
    public private(set) var size = 0
    private var values: [String: String] = [:]
    private static let known: Set = [
        "content-encoding", "content-length", "content-range", "date", "etag", "last-modified", "location",
        "proxy-authenticate",
        "retry-after", "transfer-encoding", "www-authenticate",
    ]
    /// Fields that must not have two different values. If another field is repeated, its values are joined.
    private static let single: Set = [
        "content-length", "content-range", "date", "etag", "last-modified", "location", "retry-after",
    ]

    /// Creates an empty head.
    public init() {}

    /// Parses one line of a response's head, with or without its line break.
    public mutating func take(_ line: some Collection<UInt8>) {
        size += line.count
        let text = Substring(String(wire: line.prefix { $0 != 0x0d && $0 != 0x0a })).utf8
        if text.starts(with: "HTTP/".utf8) {
            values = [:]
            status = 0
            isComplete = false
            guard let space = text.firstIndex(of: 0x20) else { return }
            let digits = Bytes.trimmed(text[space...]).prefix { $0 != 0x20 }
            if digits.count == 3, let number = Bytes.count(digits), number >= 100 { status = Int(number) }
            return
        }
        // Ignore lines after the end of the head: they are trailers.
        if isComplete { return }
        if text.isEmpty {
            isComplete = status >= 200
            return
        }
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return }
        let name = Bytes.lowercased(Substring(text[..<colon]))
        guard Self.known.contains(name) else { return }
        let value = Bytes.trimmed(text[text.index(after: colon)...])
        guard value.count <= Self.longestValue else { return }
        let new = String(Substring(value))
        guard let old = values[name] else {
            values[name] = new
            return
        }
        if Self.single.contains(name) {
            // The two values of the field differ: trust neither.
            if old != new { values[name] = "" }
        } else if old.utf8.count + new.utf8.count < Self.longestValue {
            values[name] = old + ", " + new
        }
    }

    /// The value of a field; nil for fields that transfers do not need.
    public subscript(_ name: String) -> String? { values[name] }

    /// The body's length, if the server sent it and the body is not chunked.
    public var length: Int64? {
        guard values["transfer-encoding"] == nil, let text = values["content-length"] else { return nil }
        return Bytes.count(text.utf8)
    }

    /// The body's content encoding; nil for none.
    public var encoding: String? {
        guard let text = values["content-encoding"] else { return nil }
        let coded = Bytes.lowercased(text).split(whereSeparator: { $0 == "," || $0 == " " }).filter { $0 != "identity" }
        return coded.isEmpty ? nil : coded.joined(separator: ", ")
    }

    /// The value for the field If-Range: a strong ETag, or a Last-Modified that is at least 60 s older than the
    /// response's Date (RFC 9110, 8.8.2.2); nil if the response has neither.
    public var condition: String? {
        if let tag = values["etag"], Self.isStrong(tag) { return tag }
        guard let text = values["last-modified"], let date = values["date"], let modified = HTTPDate.seconds(text),
            let sent = HTTPDate.seconds(date), sent - modified >= 60
        else { return nil }
        return text
    }

    /// The value for the field If-None-Match or If-Modified-Since: the ETag, weak or strong, or else the Last-Modified;
    /// nil if the response has neither.
    public var version: String? {
        if let tag = values["etag"], Self.isTag(tag) { return tag }
        return values["last-modified"].flatMap { HTTPDate.seconds($0) == nil ? nil : $0 }
    }

    /// Whether a ``version`` is an ETag.
    public static func isTag(_ version: String) -> Bool {
        version.utf8.starts(with: "W/".utf8) ? isStrong(String(version.dropFirst(2))) : isStrong(version)
    }

    static func isStrong(_ tag: String) -> Bool {
        let bytes = tag.utf8
        guard (3...1024).contains(bytes.count), bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\"")
        else {
            return false
        }
        return bytes.dropFirst().dropLast().allSatisfy { $0 > 0x20 && $0 != 0x22 && $0 != 0x7f }
    }

    /// Seconds after which the server wants the retry, at most an hour.
    ///
    /// - Parameter now: seconds since 1970; used if the server sends a time but no Date.
    public func retryAfter(now: Int64) -> Int64? {
        guard let text = values["retry-after"] else { return nil }
        if let seconds = Bytes.count(text.utf8) { return min(seconds, 3600) }
        guard let time = HTTPDate.seconds(text) else { return nil }
        let sent = values["date"].flatMap(HTTPDate.seconds) ?? now
        return min(max(0, time - sent), 3600)
    }

    /// The login schemes that the server offers: from WWW-Authenticate, or for 407 from Proxy-Authenticate.
    public var challenges: [Challenge] {
        Challenge.all(in: values[status == 407 ? "proxy-authenticate" : "www-authenticate"] ?? "")
    }
}
