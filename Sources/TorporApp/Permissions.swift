// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
import Varlink

/// What the app may do in its sandbox.
extension TorporApp {
    /// What applies to each permission that the configuration declares for the app; empty without a supervisor.
    public func permissions() async throws(AppError) -> [PermissionStanding] {
        guard isSupervised else { return [] }
        let reply = try await call(.permissions)
        return (reply["permissions"]?.arrayValue ?? []).compactMap { try? PermissionStanding(json: $0) }
    }

    /// Has people asked for a permission that is declared and that nobody has answered. Does not wait for the answer; if
    /// that changes the app's sandbox, the app is ended and launched again.
    ///
    /// People are asked for each permission once, and at most once an hour for each app.
    ///
    /// - Throws: ``AppError`` if the permission is not declared, or nobody can be asked.
    @discardableResult
    public func requestPermission(_ name: String) async throws(AppError) -> PermissionReply {
        // Without a supervisor nothing is withheld.
        guard isSupervised else { return PermissionReply(state: "allow") }
        let reply = try await call(.requestPermission(name: name))
        guard let standing = try? PermissionReply(json: reply) else {
            throw AppError(code: .failed, "the supervisor's reply has no state")
        }
        return standing
    }
}
