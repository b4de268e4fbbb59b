// SPDX-License-Identifier: Apache-2.0

import Bearer
import Linux
import Web

/// The secret token that gives access to the dashboard.
enum TokenStore {
    /// Why no token could be read or created.
    struct Problem: Error, CustomStringConvertible {
        let description: String
    }

    /// Reads the token from a file that the user wrote.
    static func read(_ path: String) throws(Problem) -> [UInt8] {
        let text: String
        do throws(Errno) {
            text = try File.readString(path, limit: 4096)
        } catch {
            throw Problem(description: "cannot read the token in \(path): \(error)")
        }
        let line = Array((text.split(separator: "\n").first ?? "").utf8).filter { $0 != 13 }
        guard line.count >= Bearer.shortest else {
            throw Problem(
                description: "the token in \(path) has only \(line.count) bytes and could be guessed: use at least "
                    + "\(Bearer.shortest), as from ‘openssl rand -hex 32’"
            )
        }
        return line
    }

    /// Reads the token that was created at an earlier start. If there is none, creates one that only this user can
    /// read.
    static func own(_ path: String) throws(Problem) -> [UInt8] {
        if File.exists(path) {
            if let token = try? read(path) { return token }
        }
        let random = (0..<4).flatMap { _ in
            let word = UInt64.random(in: .min ... .max)
            return (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * UInt64($0))) }
        }
        let token = Array(SHA256.hexadecimal(random).utf8)
        do throws(Errno) {
            if let folder = File.parent(of: path) { try File.makeDirectories(folder, mode: 0o700) }
            try File.replace(path, token + [10], mode: 0o600)
        } catch {
            throw Problem(description: "cannot save a token in \(path): \(error): name another file with --token-file")
        }
        return token
    }

    /// The path of the created token: in systemd's state directory if that is set, otherwise in root's or the user's
    /// directory.
    static var place: String {
        if let state = ThisProcess.environment("STATE_DIRECTORY"), !state.isEmpty { return state + "/token" }
        if Users.isRoot { return "/var/lib/torpor-web/token" }
        if let state = ThisProcess.environment("XDG_STATE_HOME"), state.hasPrefix("/") {
            return state + "/torpor/web-token"
        }
        return (ThisProcess.environment("HOME") ?? "/") + "/.local/state/torpor/web-token"
    }
}
