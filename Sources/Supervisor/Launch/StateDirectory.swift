// SPDX-License-Identifier: Apache-2.0

import Linux

/// An app's state directory (TORPOR_STATE_DIRECTORY), which outlives the app. It belongs to the app's user; the
/// directories above it belong to the supervisor.
enum StateDirectory {
    /// Creates the directory and those above it. Other users can list neither the apps nor an app's files, nor read the
    /// files.
    static func make(_ path: String) throws(Errno) {
        if let parent = File.parent(of: path) { try File.makeDirectories(parent, mode: 0o711) }
        try File.makeDirectories(path, mode: 0o700)
    }
}
