// SPDX-License-Identifier: Apache-2.0

public import Varlink
import WireText

/// Messages that ask an app to open a URL. They have a topic of their own.
public enum OpenedURL {
    /// The topic of these messages.
    public static let topic = "torpor.url"
    /// Topics with this prefix belong to torpord: clients may not post to them.
    public static let reserved = "torpor."
    /// The most URLs that may wait for an app.
    public static let mostWaiting = 16
    /// The longest URL, in bytes.
    public static let longest = 8 << 10
    /// Schemes that are refused: they bypass the configuration of what an app may open, or lead to torpord itself.
    public static let refusedSchemes = ["file", "data", "javascript", "torpor"]

    /// Why the URL is refused, as the rest of a sentence; nil if it is allowed.
    ///
    /// - Parameter isFile: whether the URL must have the scheme `file`, because an operator named a file.
    public static func problem(_ url: String, isFile: Bool = false) -> String? {
        let bytes = url.utf8
        if bytes.isEmpty || bytes.count > longest { return "must have 1 to \(longest) bytes" }
        if bytes.contains(where: { $0 <= 0x20 || $0 == 0x7f }) || url.unicodeScalars.contains(where: Self.isControl) {
            return "must not contain spaces or control characters: write them as %20 and so on"
        }
        guard let scheme = scheme(url) else {
            return
                "needs a scheme, as in notes:today (RFC 3986): a letter, then letters, digits, +, - or ., then a colon"
        }
        if isFile { return scheme == "file" ? nil : "must be that of a file" }
        if scheme == "file" { return "must not have the scheme file: ‘torpor open FILE’ opens files" }
        if refusedSchemes.contains(scheme) { return "must not have the scheme \(scheme)" }
        return nil
    }

    /// The scheme of the URL in lower case; nil if there is none.
    public static func scheme(_ url: String) -> String? {
        guard let colon = url.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        return isScheme(url.utf8[..<colon]) ? url[..<colon].lowercased() : nil
    }

    /// Whether `name` is a valid scheme: a letter, then letters, digits, `+`, `-` and `.` (RFC 3986, section 3.1).
    public static func isScheme(_ name: some Collection<UInt8>) -> Bool {
        guard let first = name.first, isLetter(first) else { return false }
        return name.allSatisfy { byte in
            isLetter(byte) || (0x30...0x39).contains(byte) || [UInt8(ascii: "+"), 0x2d, 0x2e].contains(byte)
        }
    }

    /// The host of an http or https URL, in lower case, without user and port. nil for other URLs, and if programs
    /// might disagree about what the host is.
    public static func host(_ url: String) -> String? {
        guard let scheme = scheme(url), scheme == "http" || scheme == "https" else { return nil }
        let rest = url.utf8.dropFirst(scheme.utf8.count + 1)
        guard rest.starts(with: "//".utf8) else { return nil }
        let ends = "/?#".utf8
        var authority = rest.dropFirst(2).prefix { !ends.contains($0) }
        // RFC 3986 has no backslash. Browsers read a backslash as a slash, other programs as part of the user name.
        guard !authority.contains(UInt8(ascii: "\\")) else { return nil }
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) { authority = authority[authority.index(after: at)...] }
        if authority.first == UInt8(ascii: "[") {
            guard let end = authority.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            authority = authority[...end]
        } else {
            authority = authority.prefix { $0 != UInt8(ascii: ":") }
        }
        guard !authority.isEmpty else { return nil }
        // `example.org.` is the same host as `example.org`.
        if authority.last == UInt8(ascii: ".") { authority = authority.dropLast() }
        return lowercased(authority)
    }

    /// The URL of the file with this absolute path (RFC 8089).
    public static func ofFile(_ path: String) -> String {
        var url = "file://"
        for byte in path.utf8 {
            let isPlain = isLetter(byte) || (0x30...0x39).contains(byte) || "-._~/!$&'()*+,;=:@".utf8.contains(byte)
            if isPlain {
                url.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                url += "%" + (digits.utf8.count == 1 ? "0" + digits : digits)
            }
        }
        return url
    }

    /// The path in a file URL that ``ofFile(_:)`` made; nil for other URLs.
    public static func path(_ url: String) -> String? {
        guard url.utf8.starts(with: "file:///".utf8) else { return nil }
        var path: [UInt8] = []
        var rest = url.utf8.dropFirst(7)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                path.append(byte)
                continue
            }
            let digits = rest.prefix(2).compactMap(hexadecimal)
            guard digits.count == 2 else { return nil }
            path.append(digits[0] << 4 | digits[1])
            rest = rest.dropFirst(2)
        }
        return String(validWire: path)
    }

    private static func hexadecimal(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46, 0x61...0x66: (byte | 0x20) - 0x61 + 10
        default: nil
        }
    }

    /// The text with ASCII letters in lower case. Other letters stay, so that none of them becomes an ASCII letter.
    public static func lowercased(_ text: some Collection<UInt8>) -> String {
        String(wire: text.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 })
    }

    /// Creates the message that asks an app to open the target. `key` names the request, so that a request that is
    /// sent twice is delivered once.
    ///
    /// - Parameter source: the app that requested the opening; nil for a user.
    public static func draft(
        _ target: OpenTarget,
        from sender: String,
        source: String? = nil,
        key: String?
    ) -> MailDraft {
        let payload = payload(target, source: source)
        return MailDraft(topic: topic, message: "openURL", payload: payload, key: key, sender: sender)
    }

    /// The payload of the message that asks an app to open the target.
    public static func payload(_ target: OpenTarget, source: String?) -> JSON {
        var payload: JSONObject = ["url": .string(target.url)]
        if let source { payload["source"] = .string(source) }
        if case .file(_, let type?) = target { payload["type"] = .string(type) }
        return .object(payload)
    }

    /// What the message asks the app to open; nil if the message is not about a URL.
    public static func target(of mail: Mail) -> OpenTarget? {
        guard let url = mail.url else { return nil }
        return path(url).map { .file($0, type: mail.draft.payload["type"]?.stringValue) } ?? .url(url)
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte | 0x20) }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}
