// SPDX-License-Identifier: Apache-2.0

import TorporAPI
import Varlink

extension TorporApp {
    /// Names what the app must refresh before users see it again. The names gather while the app is not in the
    /// foreground, even if it is ended; ``AppDelegate/refresh(_:names:)`` gets them when it comes to the foreground, before
    /// URLs and `didBecomeActive`. An app in the foreground gets them at once. Returns when that is durable.
    ///
    /// - Parameter names: at most 64, of 128 bytes each. If more have gathered, the app gets `["*"]`.
    public func setNeedsRefresh(_ names: [String]) async throws(AppError) {
        guard isSupervised else { return }
        _ = try await call(.setNeedsRefresh(names: names))
    }
}
