// SPDX-License-Identifier: Apache-2.0

import TorporAPI
import Varlink

extension TorporApp {
    /// Names what the app must refresh before users see it again. While the app is not in the foreground, the
    /// supervisor collects the names, even if the app ends. When the app comes to the foreground,
    /// ``AppDelegate/refresh(_:names:)`` gets all of them, before URLs and `didBecomeActive`. An app in the foreground
    /// gets them at once. Returns when the names are stored durably.
    ///
    /// - Parameter names: at most 64, of 128 bytes each. If more were collected, the app gets `["*"]`.
    public func setNeedsRefresh(_ names: [String]) async throws(AppError) {
        guard isSupervised else { return }
        _ = try await call(.setNeedsRefresh(names: names))
    }
}
