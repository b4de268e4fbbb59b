// SPDX-License-Identifier: Apache-2.0

/// Why a document cannot be read or made.
package struct DocumentFault: Error, CustomStringConvertible {
    /// The reason, a sentence.
    package let description: String
    /// The error of a call to the supervisor, if one failed.
    package let call: (any Error)?
    /// Whether the document that was given is wrong.
    package let isInput: Bool

    package init(_ sentence: String, isInput: Bool = false) {
        description = sentence
        call = nil
        self.isInput = isInput
    }

    package init(call: any Error) {
        description = "\(call)"
        self.call = call
        isInput = false
    }
}
