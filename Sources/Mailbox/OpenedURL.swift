// SPDX-License-Identifier: Apache-2.0

import Varlink

/// A URL that an app is to open: mail of a topic of its own.
public enum OpenedURL {
    /// The topic.
    public static let topic = "torpor.url"
    /// Topics that begin with this are the supervisor's own: nobody may post about them.
    public static let reserved = "torpor."
    /// So many may wait for an app.
    public static let mostWaiting = 16
    /// Bytes that one may have.
    public static let longest = 8 << 10
    /// These lead around what an app may open, or to the supervisor itself.
    static let refusedSchemes = ["file", "data", "javascript", "torpor"]

    /// What is wrong with it, if anything: a sentence that goes on behind what it is called.
    public static func problem(_ url: String) -> String? {
        let bytes = url.utf8
        if bytes.isEmpty || bytes.count > longest { return "has from 1 to \(longest) bytes" }
        if bytes.contains(where: { $0 <= 0x20 || $0 == 0x7f }) || url.unicodeScalars.contains(where: Self.isControl) {
            return "must not contain spaces or control characters: write them as %20 and so on"
        }
        guard let scheme = scheme(url) else {
            return
                "needs a scheme, as in notes:today (RFC 3986): a letter, then letters, digits, +, - or ., then a colon"
        }
        if refusedSchemes.contains(scheme) { return "must not have the scheme \(scheme)" }
        return nil
    }

    /// Its scheme in lower case; nil where it has none.
    public static func scheme(_ url: String) -> String? {
        guard let colon = url.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let name = url.utf8[..<colon]
        guard let first = name.first, isLetter(first) else { return nil }
        let isScheme = name.allSatisfy { byte in
            isLetter(byte) || (0x30...0x39).contains(byte) || [UInt8(ascii: "+"), 0x2d, 0x2e].contains(byte)
        }
        return isScheme ? url[..<colon].lowercased() : nil
    }

    /// It as something to tell. `key` names the request: one that is asked twice is told once.
    public static func draft(_ url: String, from sender: String, key: String?) -> MailDraft {
        MailDraft(topic: topic, message: "openURL", payload: ["url": .string(url)], key: key, sender: sender)
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte | 0x20) }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}
