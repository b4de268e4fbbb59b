// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
public import Varlink

/// An alert of the app that came while the app was in the foreground, or that a user answered.
public struct ReceivedAlert: Hashable, Sendable {
    let parameters: JSON

    /// The name that the app gave the alert.
    public var id: String { parameters["alert"]?.stringValue ?? "" }
    /// The time for which the alert was scheduled, microseconds since 1970.
    public var scheduledAt: Int64 { parameters["scheduled_at"]?.intValue ?? 0 }
    /// The data that the app gave with the alert.
    public var payload: JSON { parameters["payload"] ?? .null }
    /// The user's choice: `default` for the alert itself, or the id of an action; nil if the alert came while the app
    /// was in the foreground, so that no user was asked.
    public var action: String? { parameters["action"]?.stringValue }
    /// The token that the window manager requires before it raises the app's window (xdg-activation).
    public var activationToken: String? { parameters["activation_token"]?.stringValue }
}

/// Alerts for users, and the badge: a number at the app's menu entry.
extension TorporApp {
    private static let nobody = AppError(code: .failed, "there is no supervisor that could show alerts")

    /// Shows users an alert, now, later or repeatedly, and replaces an alert with the same id. Returns the alert once
    /// it is durable. A request without a token gets one, so that a retry schedules no second alert.
    ///
    /// - Throws: ``AppError`` without a supervisor, or with the reason of a refusal.
    @discardableResult
    public func scheduleAlert(_ request: ScheduleAlertRequest) async throws(AppError) -> AlertInfo {
        guard isSupervised else { throw Self.nobody }
        var request = request
        request.token = request.token ?? .random()
        let reply = try await call(.scheduleAlert(request))
        guard let info = try? AlertInfo(json: reply["alert"] ?? .null) else {
            throw AppError(code: .failed, "the supervisor's reply has no alert")
        }
        return info
    }

    /// Cancels alerts, whether they are scheduled or open.
    public func cancelAlerts(_ ids: [String]) async throws(AppError) {
        guard isSupervised else { throw Self.nobody }
        // An older supervisor would take an empty list to mean all alerts.
        if !ids.isEmpty { _ = try await call(.cancelAlert(ids: ids)) }
    }

    /// Cancels all alerts of the app.
    public func cancelAllAlerts() async throws(AppError) {
        guard isSupervised else { throw Self.nobody }
        _ = try await call(.cancelAlert(ids: nil))
    }

    /// The app's alerts; empty without a supervisor.
    public func alerts() async throws(AppError) -> [AlertInfo] {
        guard isSupervised else { return [] }
        let reply = try await call(.alerts)
        return (reply["alerts"]?.arrayValue ?? []).compactMap { try? AlertInfo(json: $0) }
    }

    /// Shows a number from 1 to 9999 at the app's menu entry; 0 removes the number.
    public func setBadge(_ count: Int) async throws(AppError) {
        guard isSupervised else { throw Self.nobody }
        _ = try await call(.setBadge(count: Int64(count)))
    }
}
