// SPDX-License-Identifier: Apache-2.0

import Linux
import StateDocuments
import TorporAPI
import Varlink

/// An app's current activity as a document for another machine. The document may also contain the app's saved state.
struct ActivityDocument {
    private static let form = SealedDocument.Form(
        format: "torpor-activity",
        version: 1,
        writer: "torpor activity export",
        wrong: "no exported activity"
    )
    /// The maximum size of a document: the largest state plus 1 MiB for the activity, whose payload has at most 64 KiB.
    static let mostBytes = StatePart.mostState + (1 << 20)

    /// The app whose activity the document contains.
    let app: String
    let activity: SetActivityRequest
    /// The app's saved state; nil if the document has none.
    let state: StateDocument?

    init(app: String, _ activity: SetActivityRequest, _ state: StateDocument?) {
        (self.app, self.activity, self.state) = (app, activity, state)
    }

    /// Reads a document.
    ///
    /// - Throws: ``DocumentFault`` with a sentence if the document is damaged, cut off, or of another version.
    init(_ bytes: [UInt8]) throws(DocumentFault) {
        guard bytes.count <= Self.mostBytes else {
            throw Self.form.bad("has more than \(Self.mostBytes >> 20) MiB")
        }
        let document = try SealedDocument(bytes, Self.form)
        do throws(FieldError) {
            let fields = try Fields(document.header)
            app = try fields.string("app")
            var activity = SetActivityRequest(type: try fields.string("type"))
            activity.title = try fields.optionalString("title")
            activity.url = try fields.optionalString("url")
            activity.payload = fields["payload"] ?? .null
            self.activity = activity
        } catch {
            throw Self.form.bad("cannot be read (\(error))")
        }
        state = document.body.isEmpty ? nil : try StateDocument(Array(document.body))
        if let state, state.app != app || state.state == nil || state.mail != nil {
            throw Self.form.bad("has the state of another app")
        }
    }

    /// Encodes the document as bytes.
    func encoded() throws(DocumentFault) -> [UInt8] {
        let members: JSONObject = [
            "app": .string(app), "type": .string(activity.type), "title": .optional(activity.title),
            "url": .optional(activity.url), "payload": activity.payload,
        ]
        return SealedDocument.encoded(members, try state?.encoded() ?? [], Self.form)
    }

    /// A description of the document's content, as JSON for programs.
    var summary: JSON {
        [
            "app": .string(app), "type": .string(activity.type), "title": .optional(activity.title),
            "state_bytes": .optional(state?.state.map { Int64($0.count) }),
        ]
    }
}
