// SPDX-License-Identifier: Apache-2.0

import BundleSeals
import Bundles
import StateDocuments

/// A state that torpor-gateway takes from a server of NATS, or `torpor state import` from anywhere.
enum ExportedStates: FuzzedParser {
    static let nanosecondsPerByte = 20_000

    static func run(_ bytes: [UInt8]) throws(Finding) {
        try read(bytes)
        // Bytes at random never end with the digest of those before it.
        try read(bytes + [10] + Hex.text(bytes.withUnsafeBytes { Digest.sha256($0) }) + [10])
    }

    private static func read(_ bytes: [UInt8]) throws(Finding) {
        let document: StateDocument
        do throws(DocumentFault) {
            document = try StateDocument(bytes)
        } catch {
            return try expect(!error.description.isEmpty, "it is refused without a reason")
        }
        // With much mail a document may be too large for an export.
        guard let encoded = try? document.encoded() else { return }
        guard let again = try? StateDocument(encoded) else { throw Finding("it is refused the second time") }
        try expect(again.app.utf8.elementsEqual(document.app.utf8), "the app is another one")
        try expect(again.savedAt == document.savedAt && again.state == document.state, "the state is another one")
        try expect(again.mail?.count == document.mail?.count, "some mail is lost")
    }
}
