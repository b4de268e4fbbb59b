// SPDX-License-Identifier: Apache-2.0

import TorporAPI
public import Varlink

extension TorporApp {
    /// The values of the app's settings, with a member for each setting that the configuration declares; null for a
    /// setting without a value. Durations are in seconds, sizes in bytes. Empty without a supervisor.
    public func settings() async throws(AppError) -> JSON {
        guard isSupervised else { return .emptyObject }
        return try await call(.settings)["settings"] ?? .emptyObject
    }

    /// Sets `writable` settings, and resets those in `unset` to their defaults: either all of them or none. Returns the
    /// names of the settings that changed once the change is durable. The app gets no `settingsDidChange` for these
    /// changes.
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
