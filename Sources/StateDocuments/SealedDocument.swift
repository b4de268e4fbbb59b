// SPDX-License-Identifier: Apache-2.0

import BundleSeals
import Bundles
package import Varlink
import WireText

/// The format of documents that move something to another machine: a line with a JSON object, then bytes, a line break,
/// and a line with the SHA-256 of everything before it, in hexadecimal.
package struct SealedDocument {
    /// The properties of one kind of document.
    package struct Form: Sendable {
        /// The member `format` of the header.
        let format: String
        let version: Int64
        /// The command that writes such documents.
        let writer: String
        /// What to call a document of any other kind in an error message, such as `no exported state`.
        let wrong: String

        package init(format: String, version: Int64, writer: String, wrong: String) {
            (self.format, self.version, self.writer, self.wrong) = (format, version, writer, wrong)
        }

        /// The error for a document that is not accepted, for the reason `why`.
        package func bad(_ why: String) -> DocumentFault {
            DocumentFault("the input \(why): it must be what ‘\(writer)’ wrote", isInput: true)
        }
    }

    /// The length of the end of a document: a line break, the digest and another line break.
    private static let tailBytes = 66

    package let header: JSON
    package let body: ArraySlice<UInt8>

    /// Reads a document.
    ///
    /// - Throws: ``DocumentFault`` with a sentence if it is damaged, cut off, or of another form or version.
    package init(_ bytes: [UInt8], _ form: Form) throws(DocumentFault) {
        guard let line = bytes.firstIndex(of: 10), let header = try? JSON.parse(bytes[..<line]),
            header["format"]?.stringValue == form.format
        else { throw form.bad("is \(form.wrong)") }
        guard header["version"]?.intValue == form.version else {
            throw form.bad("has another version than this torpor reads (\(form.version))")
        }
        let end = bytes.count - Self.tailBytes
        guard end > line, bytes[end] == 10, bytes.last == 10 else { throw form.bad("is cut off") }
        let digest = bytes[..<end].withUnsafeBytes { Digest.sha256($0) }
        guard Array(bytes[(end + 1)..<(bytes.count - 1)]) == Hex.text(digest) else { throw form.bad("is damaged") }
        self.header = header
        body = bytes[(line + 1)..<end]
    }

    /// Encodes a document: the members of its JSON object, and the bytes.
    package static func encoded(_ members: JSONObject, _ body: [UInt8], _ form: Form) -> [UInt8] {
        var header: JSONObject = ["format": .string(form.format), "version": .int(form.version)]
        for member in members.members { header[member.name] = member.value }
        let bytes = JSON.object(header).serialised() + [10] + body
        return bytes + [10] + Hex.text(bytes.withUnsafeBytes { Digest.sha256($0) }) + [10]
    }
}
