// SPDX-License-Identifier: Apache-2.0

package import Configuration
import Engine
import Linux
import SystemPackage
package import Varlink
import WireText

/// The files in an app's state directory from which programs can read the app's settings.
///
/// The directory belongs to the app's user, so its content is not trusted, and no links in it are followed. Reading and
/// writing block on the disk, so use this type on a background thread.
struct SettingsFiles: Sendable {
    static let json = "settings.json"
    static let env = "settings.env"
    private static let draft = ".settings.new"

    /// The app's state directory (TORPOR_STATE_DIRECTORY). Only this directory belongs to the app's user; the folders
    /// above it belong to the supervisor.
    let directory: String
    /// The account that owns the directory; nil for the supervisor's own user.
    let names: Account.Names?
    /// The content of `settings.json`. Nil if the app has no settings: then both files are removed.
    let content: [UInt8]?
    /// The content of `settings.env`; nil to remove the file.
    let variables: [UInt8]?

    /// Writes the files, for the account `known`, or for the one that a lookup finds. Returns nil on success, otherwise
    /// the reason of the failure as half a sentence.
    func write(as known: Account? = nil) -> String? {
        do throws(LaunchError) {
            let user = try Account.find(names, known: known)?.user
            return write(user.map { (uid: $0.uid, gid: $0.gid) })
        } catch {
            return "their owner is not known: \(error)"
        }
    }

    private func write(_ owner: (uid: UInt32, gid: UInt32)?) -> String? {
        do throws(Errno) {
            guard let folder = try open(owner) else { return nil }
            for (name, content) in [(Self.json, content), (Self.env, variables)] {
                if let content {
                    try Self.replace(name, content, in: folder.raw, owner)
                } else {
                    try Self.remove(name, in: folder.raw)
                }
            }
            return nil
        } catch {
            return "\(directory)/\(Self.json) cannot be written: \(error)"
        }
    }

    private func open(_ owner: (uid: UInt32, gid: UInt32)?) throws(Errno) -> Descriptor? {
        let flags: OpenFlags = [.directory, .noFollow]
        do throws(Errno) {
            return try File.open(directory, flags)
        } catch {
            guard error == .noSuchFileOrDirectory else { throw error }
        }
        if content == nil { return nil }
        try StateDirectory.make(directory)
        let folder = try File.open(directory, flags)
        if let owner, Users.isRoot { try File.setOwner(descriptor: folder.raw, uid: owner.uid, gid: owner.gid) }
        return folder
    }

    private static func replace(
        _ name: String,
        _ content: [UInt8],
        in folder: Int32,
        _ owner: (uid: UInt32, gid: UInt32)?
    ) throws(Errno) {
        try remove(draft, in: folder)
        let file = try File.create(draft, in: folder, mode: 0o600)
        do throws(Errno) {
            if let owner, Users.isRoot { try File.setOwner(descriptor: file.raw, uid: owner.uid, gid: owner.gid) }
            try Descriptor.writeAll(file.raw, content)
            try File.rename(draft, to: name, in: folder)
        } catch {
            try? remove(draft, in: folder)
            throw error
        }
    }

    private static func remove(_ name: String, in folder: Int32) throws(Errno) {
        do throws(Errno) {
            try File.remove(name, in: folder)
        } catch {
            if error != .noSuchFileOrDirectory { throw error }
        }
    }
}

extension SettingsFiles {
    /// The settings by name, each with the value that programs get; null if a setting has no value.
    static func document(_ declared: [SettingDeclaration], _ values: SettingValues) -> JSONObject {
        JSONObject(
            members: declared.map { setting in
                let value = values.effective(setting).map { setting.value($0).json } ?? .null
                return JSONObject.Member(name: setting.name, value: value)
            }
        )
    }

    /// A shell script with a line `NAME='VALUE'` for each setting that has a value.
    static func assignments(_ declared: [SettingDeclaration], _ values: SettingValues) -> [UInt8] {
        var lines: [UInt8] = []
        for setting in declared {
            guard let value = values.effective(setting) else { continue }
            lines += Array(setting.name.utf8) + Array("='".utf8)
            for byte in setting.value(value).text.utf8 {
                if byte == UInt8(ascii: "'") { lines += Array("'\\''".utf8) } else { lines.append(byte) }
            }
            lines += Array("'\n".utf8)
        }
        return lines
    }
}

extension SettingValue {
    package var json: JSON {
        switch self {
        case .text(let text): .string(text)
        case .integer(let number): .int(number)
        case .number(let number): Int64(exactly: number).map { .int($0) } ?? .double(number)
        case .boolean(let flag): .bool(flag)
        }
    }
}
