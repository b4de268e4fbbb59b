// SPDX-License-Identifier: Apache-2.0

import TorporAPI
public import Varlink

extension TorporApp {
    /// What the app is set to: a member for each setting that its configuration declares, null where it has no value.
    /// Durations are in seconds, sizes in bytes. Empty without a supervisor.
    public func settings() async throws(AppError) -> JSON {
        guard isSupervised else { return .emptyObject }
        return try await call(.settings)["settings"] ?? .emptyObject
    }

    /// Sets settings whose declaration says `writable`, and gives others of these their defaults again: all or none.
    /// Returns, when that is durable, the names of those that are otherwise than before; the app is not told of them.
    @discardableResult
    public func setSettings(_ values: [String: JSON], unset: [String] = []) async throws(AppError) -> [String] {
        guard isSupervised else { return [] }
        var request = SetSettingsRequest(app: "")
        request.unset = unset
        for (key, value) in values.sorted(by: { $0.key < $1.key }) {
            request.values.append(SetSettingsRequest.Value(key, SetSettingsRequest.text(value) ?? ""))
        }
        return try await call(.setSettings(request))["changed"]?.arrayValue?.compactMap(\.stringValue) ?? []
    }
}
