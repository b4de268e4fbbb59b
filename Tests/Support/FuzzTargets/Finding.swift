// SPDX-License-Identifier: Apache-2.0

/// Something that must hold of a parser, and does not: a sentence.
public struct Finding: Error, Hashable, Sendable, CustomStringConvertible {
    /// The sentence.
    public let description: String

    init(_ description: String) { self.description = description }
}

/// Throws a sentence unless a condition holds.
func expect(_ condition: Bool, _ sentence: @autoclosure () -> String) throws(Finding) {
    if !condition { throw Finding(sentence()) }
}
