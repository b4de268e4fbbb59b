// SPDX-License-Identifier: Apache-2.0

import TorporAPI

extension TorporApp {
    /// Saves a snapshot of what the app shows: a picture (PNG, JPEG, GIF, WebP) or a text in UTF-8, at most 4 MiB.
    /// Call this in the background or in ``AppDelegate/didEnterBackground(_:)``. The snapshot replaces the previous
    /// one and is durable when this method returns. Without a supervisor, nothing is saved.
    ///
    /// With `scene`, saves a snapshot of this scene inside the app, which must be in the background or entering it.
    ///
    /// - Throws: ``AppError/Code/tooLarge`` if the snapshot is larger, ``AppError/Code/failed`` if it has another
    ///   format or the app is in use.
    public func saveSnapshot(_ bytes: [UInt8], scene: String? = nil) async throws(AppError) {
        try await save(bytes, as: "snapshot") { .saveSnapshot(data: $0, file: $1, scene: scene) }
    }

    /// Saves a file in the app's state directory as the snapshot. The file is copied, so the app can remove it
    /// afterwards.
    public func saveSnapshot(file name: String, scene: String? = nil) async throws(AppError) {
        guard isSupervised else { return }
        _ = try await call(.saveSnapshot(data: nil, file: name, scene: scene))
    }

    /// Removes the snapshot of the app or of a scene inside it. No other snapshot is taken before the app or scene
    /// enters the background again.
    public func discardSnapshot(scene: String? = nil) async throws(AppError) {
        guard isSupervised else { return }
        _ = try await call(.discardSnapshot(scene: scene))
    }
}
