// SPDX-License-Identifier: Apache-2.0

import AppConnection
import Linux
import TorporAPI
import Varlink

extension TorporApp {
    /// The longest state, in bytes, that is sent within the call. A longer state is passed as a file.
    static let mostSentBytes = 512 << 10

    /// Saves the app's state, to be restored at the next launch after an eviction, a crash or a reboot. The new state
    /// replaces the previous one and is durable when this method returns. Without a supervisor, nothing is saved.
    ///
    /// With `scene`, saves the state of this scene inside the app, which is restored when the scene connects.
    ///
    /// - Throws: ``AppError/Code/tooLarge`` if the state has more bytes than `state_limit`.
    public func saveState(_ bytes: [UInt8], scene: String? = nil) async throws(AppError) {
        try await save(bytes, as: "state") { .saveState(data: $0, file: $1, scene: scene) }
    }

    /// Saves a file in the app's state directory as the state. The file is copied, so the app can remove it afterwards.
    public func saveState(file name: String, scene: String? = nil) async throws(AppError) {
        guard isSupervised else { return }
        _ = try await call(.saveState(data: nil, file: name, scene: scene))
    }

    /// Removes the saved state of the app or of a scene inside it.
    public func discardState(scene: String? = nil) async throws(AppError) {
        guard isSupervised else { return }
        _ = try await call(.discardState(scene: scene))
    }

    /// Sends bytes in Base64, or through a temporary file if there are more of them than ``mostSentBytes``.
    func save(
        _ bytes: [UInt8],
        as what: String,
        _ request: (_ data: String?, _ file: String?) -> AppRequest
    ) async throws(AppError) {
        guard isSupervised else { return }
        if bytes.count <= Self.mostSentBytes {
            _ = try await call(request(Base64.encode(bytes), nil))
            return
        }
        guard let stateDirectory else {
            throw AppError(
                code: .failed,
                "\(bytes.count) bytes of \(what) have to go through a file, but TORPOR_STATE_DIRECTORY is not set"
            )
        }
        let name = ".\(what)-\(ThisProcess.pid)-\(UInt32.random(in: 0...(.max)))"
        let path = stateDirectory + "/" + name
        defer { try? File.remove(path) }
        do throws(Errno) {
            try File.write(path, bytes, mode: 0o600)
        } catch {
            throw AppError(code: .failed, "the \(what) cannot be written to \(path): \(error)")
        }
        _ = try await call(request(nil, name))
    }
}
