// SPDX-License-Identifier: Apache-2.0

import WireText

/// The names of desktop entries: without `.desktop` they are what a desktop knows an app by.
package enum DesktopEntryName {
    static let prefix = "io.torpor."
    static let suffix = ".desktop"

    /// The name for an app, without `.desktop`. It is one that D-Bus allows too: other characters become `_`.
    package static func name(of app: String) -> String {
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        let letters = [UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), digits]
        var bytes = app.utf8.map { byte in
            byte == UInt8(ascii: "-") || letters.contains { $0.contains(byte) } ? byte : UInt8(ascii: "_")
        }
        // No element of a D-Bus name begins with a digit.
        if bytes.first.map(digits.contains) ?? true { bytes.insert(UInt8(ascii: "_"), at: 0) }
        return prefix + String(wire: bytes)
    }

    /// A different name for each app. Of several apps with the same name, one whose own name is part of it keeps the name,
    /// and the others get numbers.
    package static func names(of apps: [String]) -> [String: String] {
        var names: [String: String] = [:]
        var taken: Set<String> = []
        func isPlain(_ app: String) -> Bool { name(of: app).utf8.elementsEqual((prefix + app).utf8) }
        for app in apps.filter(isPlain) {
            names[app] = name(of: app)
            taken.insert(name(of: app))
        }
        for app in apps.filter({ !isPlain($0) }).sorted() {
            let first = name(of: app)
            var name = first
            var number = 2
            while !taken.insert(name).inserted {
                name = "\(first)_\(number)"
                number += 1
            }
            names[app] = name
        }
        return names
    }
}
