// SPDX-License-Identifier: Apache-2.0

import AppConnection
import CommandLinePages
import Linux
import TorporAPI
import Varlink

/// What scripts do with the saved state of the app that they belong to.
package enum SavedState {
    /// Saves a file as the state; `-` for standard input. `scene`: the scene inside the app whose state it is.
    package static func save(_ file: String, scene: String?, json: Bool) throws {
        let reply = try AppSide.save(try AppSide.bytes(of: file), as: "state") {
            .saveState(data: $0, file: $1, scene: scene)
        }
        if json { Output.document(reply) }
    }

    /// Writes the state to a file; `-` for standard output.
    package static func restore(_ file: String, json: Bool) throws {
        let path = AppSide.environment.options["restored_state"]?.stringValue
        guard let path, !path.isEmpty else {
            throw Failure(status: .notRunning, message: "there is no state to restore at this launch")
        }
        do throws(Errno) {
            let bytes = try File.read(path, limit: 1 << 30)
            if file == "-" { try Descriptor.writeAll(1, bytes) } else { try UserFile.write(file, bytes) }
            if json { Output.document(["file": .string(file), "bytes": .int(Int64(bytes.count))]) }
        } catch {
            throw Failure(status: .failed, message: "\(path) cannot be copied to \(file): \(error)")
        }
    }

    package static func discard(scene: String?, json: Bool) throws {
        _ = try AppSide.call(.discardState(scene: scene))
        if json { Output.document(["ok": true]) }
    }
}
