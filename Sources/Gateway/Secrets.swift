// SPDX-License-Identifier: Apache-2.0

import Linux
import WireText

/// Reads passwords and tokens. Each is in its own file, so that all users may read the configuration.
public struct Secrets: Sendable {
    /// Why a secret cannot be read.
    public struct Problem: Error, Sendable, CustomStringConvertible {
        /// The reason as a sentence, with what to do.
        public let description: String

        init(description: String) { self.description = description }
    }

    private let folder: String
    private let credentials: String?

    /// - Parameters:
    ///   - folder: the folder of the secrets.
    ///   - credentials: the value of `CREDENTIALS_DIRECTORY`. For a unit with `LoadCredential=secret:FOLDER`, systemd
    ///     puts secrets there under names `secret_NAME`.
    public init(folder: String, credentials: String?) {
        self.folder = folder
        self.credentials = credentials
    }

    /// The path of a secret's file.
    public func path(_ name: String) -> String {
        if name.hasPrefix("/") { return name }
        if let credentials {
            let path = credentials + "/secret_" + name
            if File.exists(path) { return path }
        }
        return folder + "/" + name
    }

    /// Whether the file at this path is a credential that systemd provides to this program.
    public func isCredential(_ path: String) -> Bool { credentials.map { path.hasPrefix($0 + "/") } ?? false }

    /// Reads a secret: the first line of its file.
    public func read(_ name: String) throws(Problem) -> [UInt8] {
        let path = path(name)
        let bytes: [UInt8]
        do throws(Errno) {
            bytes = try File.read(path, limit: 1 << 16)
        } catch {
            throw Problem(description: "the secret \(name) cannot be read: \(path): \(error)")
        }
        var line = bytes.prefix { $0 != UInt8(ascii: "\n") }
        while let last = line.last, last <= 32 { line.removeLast() }
        guard !line.isEmpty else { throw Problem(description: "the secret \(name) is empty: write it into \(path)") }
        return Array(line)
    }

    /// Reads a secret as text.
    public func text(_ name: String) throws(Problem) -> String { String(wire: try read(name)) }
}
