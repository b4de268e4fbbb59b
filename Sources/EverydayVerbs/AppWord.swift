// SPDX-License-Identifier: Apache-2.0

package enum AppWord {
    /// Whether a word on the command line is the name of one app, and neither a glob nor a tag.
    package static func isName(_ text: String) -> Bool {
        !text.utf8.contains(UInt8(ascii: "*")) && !text.utf8.contains(UInt8(ascii: "?")) && !text.hasPrefix("tag:")
    }
}
