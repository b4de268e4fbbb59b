// SPDX-License-Identifier: Apache-2.0

/// The program `torpor`, which a user has started and which became this one.
enum OwnProgram {
    /// Its path, by its first argument; nil if this program was started in another way.
    static var path: String? {
        guard let first = CommandLine.arguments.first, first.hasPrefix("/") else { return nil }
        return first
    }
}
