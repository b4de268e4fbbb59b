// SPDX-License-Identifier: Apache-2.0

import TorporAPI

extension TorporApp {
    /// Gives a snapshot of what the app shows: a picture (PNG, JPEG, GIF, WebP) or a text in UTF-8, at most 4 MiB. It is for
    /// the background and for ``AppDelegate/didEnterBackground(_:)``, takes the place of the one before, and returns when
    /// it is durable. Without a supervisor nothing is kept.
    ///
    /// With `scene`, it is a snapshot of this scene inside the app, which is in the background or entering it.
    ///
    /// - Throws: ``AppError/Code/tooLarge`` when it has more bytes, ``AppError/Code/failed`` when it is nothing of these, or
    ///   the app in use.
    public func saveSnapshot(_ bytes: [UInt8], scene: String? = nil) async throws(AppError) {
        try await save(bytes, as: "snapshot") { .saveSnapshot(data: $0, file: $1, scene: scene) }
    }

    /// Gives a file in the app's state directory likewise; it is copied, and can be removed after this.
    public func saveSnapshot(file name: String, scene: String? = nil) async throws(AppError) {
        guard isSupervised else { return }
        _ = try await call(.saveSnapshot(data: nil, file: name, scene: scene))
    }

    /// Forgets the snapshot of the app or of a scene inside it, and has none taken before it enters the background again.
    public func discardSnapshot(scene: String? = nil) async throws(AppError) {
        guard isSupervised else { return }
        _ = try await call(.discardSnapshot(scene: scene))
    }
}
