// SPDX-License-Identifier: Apache-2.0

/// Selects apps: a name, a pattern with `*` and `?`, or `tag:NAME`, which may be a pattern too. The name of an app with
/// instances selects all of them, and the name of a template of scenes all its scenes.
public struct Selector: Sendable, Hashable, CustomStringConvertible {
    /// The selector as it was written.
    public let description: String
    private let pattern: [UInt8]
    private let isTag: Bool
    private let isPlain: Bool
    /// Whether the selector may be the name of an app with instances, or of a template of scenes. Their names have an @.
    private let mayBeTemplate: Bool

    /// Creates a selector; nil if the name or tag is empty.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        let prefix = Array("tag:".utf8)
        isTag = bytes.starts(with: prefix)
        pattern = isTag ? Array(bytes.dropFirst(prefix.count)) : bytes
        isPlain = !pattern.contains { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "?") }
        mayBeTemplate = !isTag && isPlain && !pattern.contains(UInt8(ascii: "@"))
        description = text
        if pattern.isEmpty || pattern.contains(0) { return nil }
    }

    /// Whether the selector matches the app. Allocates nothing.
    public func matches(_ app: App) -> Bool {
        guard isTag else { return matches(app.nameBytes) || mayBeTemplate && isTemplate(of: app.nameBytes) }
        var isFound = false
        app.forEachTag { tag in
            isFound = matches(tag)
            return !isFound
        }
        return isFound
    }

    /// Whether the pattern is the part of an app's name before the @.
    private func isTemplate(of name: UnsafeRawBufferPointer) -> Bool {
        name.count > pattern.count && name[pattern.count] == UInt8(ascii: "@") && name.starts(with: pattern)
    }

    /// Whether the pattern matches the text: `*` matches any number of characters, and `?` matches one character.
    func matches(_ text: UnsafeRawBufferPointer) -> Bool {
        if isPlain { return text.elementsEqual(pattern) }
        var p = 0
        var t = 0
        // The position of the last `*`, and how far into the text it matches. On a mismatch, only this `*` is
        // retried.
        var star: (pattern: Int, text: Int)?
        while t < text.count {
            if p < pattern.count, pattern[p] == UInt8(ascii: "*") {
                star = (p, t)
                p += 1
            } else if p < pattern.count, pattern[p] == UInt8(ascii: "?") {
                // Skip one character, which may have several bytes (UTF-8).
                repeat { t += 1 } while t < text.count && text[t] & 0xC0 == 0x80
                p += 1
            } else if p < pattern.count, pattern[p] == text[t] {
                p += 1
                t += 1
            } else if let last = star {
                star = (last.pattern, last.text + 1)
                p = last.pattern + 1
                t = last.text + 1
            } else {
                return false
            }
        }
        return pattern[p...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
