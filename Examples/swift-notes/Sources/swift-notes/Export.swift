// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Writes notes to a file, a line each, as slowly as if each came from far away.
enum Export {
    struct Failed: Error, CustomStringConvertible { let description: String }

    /// How many lines it wrote; ends early, and leaves nothing, when its task is cancelled.
    static func write(_ notes: [String], to path: String) async throws -> Int {
        guard let file = fopen(path + ".part", "w") else {
            throw Failed(description: "\(path) cannot be written: \(String(cString: strerror(errno)))")
        }
        do {
            for note in notes {
                try await Task.sleep(for: .milliseconds(10))
                fputs(note + "\n", file)
            }
        } catch {
            fclose(file)
            unlink(path + ".part")
            throw error
        }
        fclose(file)
        rename(path + ".part", path)
        return notes.count
    }
}
