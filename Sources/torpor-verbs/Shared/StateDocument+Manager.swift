// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import EverydayVerbs
import StateDocuments
import TorporAPI
import Varlink

extension Failure {
    /// Runs `body`. If it throws a fault of a document, throws a failure of the command with the fault's text.
    static func of<T>(_ body: () throws(DocumentFault) -> T) throws(Failure) -> T {
        do throws(DocumentFault) {
            return try body()
        } catch {
            throw error.call as? Failure
                ?? Failure(status: error.isInput ? .usage : .failed, message: error.description)
        }
    }
}

extension StateDocument {
    /// Reads an app's state and mail from its supervisor.
    static func read(
        _ app: String,
        _ manager: Manager,
        withState: Bool = true,
        withMail: Bool = true
    ) throws(Failure) -> StateDocument {
        try Failure.of { () throws(DocumentFault) in
            try read(
                app,
                { request throws(DocumentFault) in try call(request, manager) },
                withState: withState,
                withMail: withMail
            )
        }
    }

    /// Sends the state and the mail to the app's supervisor, which stores them for the app.
    func give(to manager: Manager) throws(Failure) {
        let repeated = try Failure.of { () throws(DocumentFault) in
            try give { request throws(DocumentFault) in try Self.call(request, manager) }
        }
        guard repeated > 0 else { return }
        let which = repeated == 1 ? "a message of it waits" : "\(repeated) messages of it wait"
        Complaint.say("\(which) since an earlier import, and \(repeated == 1 ? "is" : "are") not posted again", .remark)
    }

    private static func call(_ request: ManagerRequest, _ manager: Manager) throws(DocumentFault) -> JSON {
        do throws(Failure) {
            return try manager.call(request)
        } catch {
            throw DocumentFault(call: error)
        }
    }
}
