// SPDX-License-Identifier: Apache-2.0

import TorporAPI
import Varlink

/// A failed request to the supervisor, with a sentence that says why.
public struct AppError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error.
    public struct Code: Hashable, Sendable {
        let name: String
        /// This process does not belong to the app.
        public static let notPermitted = Code(name: "notPermitted")
        /// Another process of the app is its delegate.
        public static let alreadyAttached = Code(name: "alreadyAttached")
        /// The state is larger than the app's `state_limit`.
        public static let tooLarge = Code(name: "tooLarge")
        /// The app is ending, and the supervisor no longer answered.
        public static let ending = Code(name: "ending")
        /// Any other error.
        public static let failed = Code(name: "failed")
    }

    /// The kind of error.
    public let code: Code
    /// A sentence for people.
    public let description: String

    init(code: Code, _ description: String) {
        self.code = code
        self.description = description
    }

    init(_ error: VarlinkClientError) {
        description = "\(error)"
        code =
            switch error {
            case .service(AppInterface.ErrorName.notPermitted, _): .notPermitted
            case .service(AppInterface.ErrorName.alreadyAttached, _): .alreadyAttached
            case .service(AppInterface.ErrorName.tooLarge, _): .tooLarge
            case .disconnected: .ending
            default: .failed
            }
    }
}
