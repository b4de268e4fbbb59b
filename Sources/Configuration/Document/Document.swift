// SPDX-License-Identifier: Apache-2.0

import CTOML
import WireText

/// A position in a file. Line and column begin at 1.
package struct SourcePosition: Sendable, Hashable {
    var line: Int
    var column: Int

    package static let unknown = SourcePosition(line: 0, column: 0)
}

/// A TOML value and its position.
package struct Node: Sendable {
    package indirect enum Value: Sendable {
        case table([Member])
        case array([Node])
        case string(String)
        case integer(Int64)
        case double(Double)
        case boolean(Bool)
        case date(DateKind, String)
    }

    /// The four kinds of dates and times in TOML.
    package enum DateKind: Sendable {
        case date
        case time
        case dateTime
        case localDateTime
    }

    package var value: Value
    package var position: SourcePosition

    /// The kind of the value with an article, such as `a table`, for the error `expected …, found …`.
    var kind: String {
        switch value {
        case .table: "a table"
        case .array: "an array"
        case .string: "a string"
        case .integer: "an integer"
        case .double: "a float"
        case .boolean: "a boolean"
        case .date: "a date or time"
        }
    }

    /// The value without positions, in the form in which policies get it.
    var plain: ConfigurationValue {
        switch value {
        case .table(let members):
            .table(Dictionary(members.map { ($0.key, $0.node.plain) }, uniquingKeysWith: { first, _ in first }))
        case .array(let elements): .array(elements.map(\.plain))
        case .string(let text): .string(text)
        case .integer(let number): .integer(number)
        case .double(let number): .double(number)
        case .boolean(let flag): .boolean(flag)
        case .date(_, let text): .date(text)
        }
    }
}

/// One key of a table and its value.
package struct Member: Sendable {
    package var key: String
    package var position: SourcePosition
    package var node: Node
}

/// The error in a file that is not valid TOML.
package struct DocumentError: Error, Hashable {
    package var message: String
    package var position: SourcePosition
}

/// A parsed TOML 1.0 file.
package enum Document {
    /// Parses a file's bytes; the result is a table.
    package static func parse(_ bytes: [UInt8]) throws(DocumentError) -> Node {
        let document: UnsafeMutablePointer<ctoml_document> = bytes.withUnsafeBytes { buffer in
            ctoml_parse(buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count)
        }
        defer { ctoml_free(document) }
        guard document.pointee.valid != 0 else {
            let message = text(document.pointee.error, document.pointee.error_length)
            throw DocumentError(
                message: message + hint(message),
                position: SourcePosition(
                    line: Int(document.pointee.error_line),
                    column: Int(document.pointee.error_column)
                )
            )
        }
        return node(document.pointee.root)
    }

    /// Advice to append to a message of the parser, if the message itself does not say what to do; otherwise empty.
    private static func hint(_ message: String) -> String {
        message.contains("could not determine value type") ? ": a text needs quotes, as in \"always\"" : ""
    }

    private static func node(_ raw: ctoml_node) -> Node {
        let children = UnsafeBufferPointer(start: raw.children, count: raw.count)
        let value: Node.Value =
            switch raw.type {
            case CTOML_TABLE:
                .table(
                    children.map { child in
                        let position = SourcePosition(line: Int(child.key_line), column: Int(child.key_column))
                        return Member(key: text(child.key, child.key_length), position: position, node: node(child))
                    }
                )
            case CTOML_ARRAY: .array(children.map(node))
            case CTOML_INTEGER: .integer(raw.integer)
            case CTOML_FLOAT: .double(raw.real)
            case CTOML_BOOLEAN: .boolean(raw.integer != 0)
            case CTOML_DATE: .date(.date, text(raw.text, raw.text_length))
            case CTOML_TIME: .date(.time, text(raw.text, raw.text_length))
            case CTOML_DATE_TIME: .date(.dateTime, text(raw.text, raw.text_length))
            case CTOML_LOCAL_DATE_TIME: .date(.localDateTime, text(raw.text, raw.text_length))
            default: .string(text(raw.text, raw.text_length))
            }
        return Node(value: value, position: SourcePosition(line: Int(raw.line), column: Int(raw.column)))
    }

    private static func text(_ start: UnsafePointer<CChar>?, _ length: Int) -> String {
        guard let start else { return "" }
        return String(wire: UnsafeRawBufferPointer(start: start, count: length))
    }
}
