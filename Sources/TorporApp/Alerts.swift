// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
public import Varlink

/// An alert of the app that came while the app was in the foreground, or that a person answered.
public struct ReceivedAlert: Hashable, Sendable {
    let parameters: JSON

    /// The app's name for it.
    public var id: String { parameters["alert"]?.stringValue ?? "" }
    /// For when it was scheduled, microseconds since 1970.
    public var scheduledAt: Int64 { parameters["scheduled_at"]?.intValue ?? 0 }
    /// What the app gave with it.
    public var payload: JSON { parameters["payload"] ?? .null }
    /// What a person chose: `default` for the alert itself, or the id of an action; nil if it came.
    public var action: String? { parameters["action"]?.stringValue }
    /// What a window manager wants to see before it raises the app's window (xdg-activation).
    public var activationToken: String? { parameters["activation_token"]?.stringValue }
}

/// Alerts for people, and the number at the app's entry.
extension TorporApp {
    private static let nobody = AppError(code: .failed, "there is no supervisor that could show alerts")

    /// Shows people an alert, now, later or again and again; one of the same id is replaced. Returns it once it is
    /// durable. A request without a token gets one.
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

    /// Cancels alerts, scheduled and open ones.
    public func cancelAlerts(_ ids: [String]) async throws(AppError) {
        guard isSupervised else { throw Self.nobody }
        // An earlier supervisor would cancel all.
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

    /// Shows a number, 1 to 9999, at the app's entry, or with 0 none.
    public func setBadge(_ count: Int) async throws(AppError) {
        guard isSupervised else { throw Self.nobody }
        _ = try await call(.setBadge(count: Int64(count)))
    }
}
