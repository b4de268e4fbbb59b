// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation
// What `torpor` needs of Swift's Foundation, instead of Foundation: packaging/link/foundation compiles it, and the linker
// of release builds takes it. Nothing of Torpor uses Foundation; ArgumentParser does, for two things: it asks whether an
// error is a LocalizedError, and `--experimental-dump-help`, which `torpor` refuses, writes JSON. Linked in for these,
// Foundation was a third of the program, most of it calendars and files.
//
// The declarations have the names and forms of Foundation's, so that their symbols are the same. A symbol that is missing
// here fails the link.

/// No error conforms to it, since whoever conformed to it would import Foundation: each cast to it fails, as it should.
public protocol LocalizedError: Error {
    var errorDescription: String? { get }
    var failureReason: String? { get }
    var recoverySuggestion: String? { get }
    var helpAnchor: String? { get }
}

open class JSONEncoder {
    public struct OutputFormatting: OptionSet, Sendable {
        public let rawValue: UInt

        public init(rawValue: UInt) {
            self.rawValue = rawValue
        }

        public static let prettyPrinted = OutputFormatting(rawValue: 1 << 0)
        public static let sortedKeys = OutputFormatting(rawValue: 1 << 1)
    }

    public init() {
        fatalError("this program was linked without Foundation's JSONEncoder")
    }
}

/// Never made: only a JSONEncoder makes one.
public struct Data {}

extension String {
    public struct Encoding: Sendable {
        public let rawValue: UInt

        public static let utf8 = Encoding(rawValue: 4)
    }

    public init?(data: __shared Data, encoding: Encoding) {
        return nil
    }
}
