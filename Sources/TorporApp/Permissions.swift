// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
import Varlink

/// The app's permissions in its sandbox.
extension TorporApp {
    /// The state of each permission that the configuration declares for the app; empty without a supervisor.
    public func permissions() async throws(AppError) -> [PermissionStanding] {
        guard isSupervised else { return [] }
        let reply = try await call(.permissions)
        return (reply["permissions"]?.arrayValue ?? []).compactMap { try? PermissionStanding(json: $0) }
    }

    /// Asks torpord to ask users for a permission that the app declares and that no user has answered yet. Does not
    /// wait for the answer. If the answer changes the app's sandbox, torpord terminates the app and launches it
    /// again.
    ///
    /// Users are asked for each permission once, and at most once an hour for each app.
    ///
    /// - Throws: ``AppError`` if the permission is not declared, or if no user can be asked.
    @discardableResult
    public func requestPermission(_ name: String) async throws(AppError) -> PermissionReply {
        // Without a supervisor, the app has no sandbox, so everything is allowed.
        guard isSupervised else { return PermissionReply(state: "allow") }
        let reply = try await call(.requestPermission(name: name))
        guard let standing = try? PermissionReply(json: reply) else {
            throw AppError(code: .failed, "the supervisor's reply has no state")
        }
        return standing
    }
}
