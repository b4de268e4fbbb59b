// SPDX-License-Identifier: Apache-2.0

package enum AppName {
    /// Whether a word on the command line is the name of one app, and neither a glob nor a tag.
    package static func isOne(_ text: String) -> Bool {
        !text.utf8.contains(UInt8(ascii: "*")) && !text.utf8.contains(UInt8(ascii: "?")) && !text.hasPrefix("tag:")
    }
}
