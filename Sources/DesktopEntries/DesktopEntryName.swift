// SPDX-License-Identifier: Apache-2.0

import WireText

/// Names of desktop entries. A desktop identifies an app by this name, without `.desktop`.
package enum DesktopEntryName {
    static let prefix = "io.torpor."
    static let suffix = ".desktop"

    /// The entry's name for an app, without `.desktop`. It is valid as a D-Bus name too: each byte that is not allowed
    /// there becomes `_x` and two hexadecimal digits, so `web@1` becomes `web_x401`.
    ///
    /// The name depends only on the app's name, and no two apps share a name. Users pin entries, and a pinned entry
    /// must not become another app's when apps come or go.
    package static func name(of app: String) -> String {
        let source = Array(app.utf8)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(source.count)
        for (index, byte) in source.enumerated() {
            if isPlain(byte, at: index), !beginsCode(source, index) {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "_"), UInt8(ascii: "x"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return prefix + String(wire: bytes)
    }

    private static let digits = Array("0123456789ABCDEF".utf8)

    /// Whether a byte may stay as it is in a D-Bus name. An element of such a name must not begin with a digit.
    private static func isPlain(_ byte: UInt8, at index: Int) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"),
            UInt8(ascii: "_"):
            true
        case UInt8(ascii: "0")...UInt8(ascii: "9"): index > 0
        default: false
        }
    }

    /// Whether a `_` in an app's name would look like the start of an escape sequence, so that it must be escaped
    /// itself.
    private static func beginsCode(_ source: [UInt8], _ index: Int) -> Bool {
        source[index] == UInt8(ascii: "_") && index + 3 < source.count && source[index + 1] == UInt8(ascii: "x")
            && digits.contains(source[index + 2]) && digits.contains(source[index + 3])
    }
}
