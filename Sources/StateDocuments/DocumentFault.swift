// SPDX-License-Identifier: Apache-2.0

/// Why a document cannot be read or made.
package struct DocumentFault: Error, CustomStringConvertible {
    /// The reason as a sentence.
    package let description: String
    /// The underlying error, if a call to the supervisor failed.
    package let call: (any Error)?
    /// Whether the fault is in the document that the user has given.
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
