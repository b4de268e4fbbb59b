// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import EverydayVerbs
import TorporAPI
import Varlink

/// What an app has on this machine besides its state and its mail: settings, which `torpor move` takes along, and data
/// folders, secrets and scenes, which it leaves.
struct MovedBelongings {
    /// The settings that have other values on the other machine.
    private(set) var values: [SetSettingsRequest.Value] = []
    /// What stays here, each as a sentence with the commands that move it.
    private(set) var left: [String] = []

    /// Compares the app on both machines. Fails only if the other machine cannot be asked.
    init(of app: String, _ manager: Manager, _ there: OtherMachine) throws(Failure) {
        try compareSettings(of: app, manager, there)
        try findData(of: app, manager, there)
        findScenes(of: app, manager, there)
    }

    /// The most bytes of changes in one command: an argument of a program may have 128 KiB, and quoting adds to it.
    private static let mostBytes = 32 << 10

    /// Sets the values on the other machine.
    func set(_ there: OtherMachine, _ app: String) throws(Failure) {
        var changes: [String] = []
        var bytes = 0
        for value in values {
            let change = "\(value.key)=\(value.text)"
            if bytes + change.utf8.count > Self.mostBytes {
                try there.run(["settings", app] + changes)
                (changes, bytes) = ([], 0)
            }
            changes.append(change)
            bytes += change.utf8.count
        }
        if !changes.isEmpty { try there.run(["settings", app] + changes) }
    }

    private mutating func compareSettings(of app: String, _ manager: Manager, _ there: OtherMachine) throws(Failure) {
        let here = Self.settings(try manager.call(.settings(app: app))["settings"] ?? [])
        // A setting that was never set has its default there too.
        let own = here.filter { $0.changedAt != nil && ($0.type == "secret" ? $0.isSet : $0.text != nil) }
        guard !own.isEmpty else { return }
        guard let reply = try answer(["settings", app, "--json"], there) else {
            left.append("its settings stay here, since \(there.host) does not say which it has")
            return
        }
        var others: [[UInt8]: SettingInfo] = [:]
        for setting in Self.settings(reply) { others[Array(setting.key.utf8)] = setting }
        for setting in own {
            guard let other = others[Array(setting.key.utf8)], other.type == setting.type else {
                left.append("its setting \(setting.key) stays here, since \(there.host) has none of that type")
                continue
            }
            if setting.type == "secret" {
                guard !other.isSet else { continue }
                left.append(
                    "its secret \(setting.key) stays here: ‘torpor settings \(app) --stdin \(setting.key)’ on "
                        + "\(there.host) sets it"
                )
            } else if let text = setting.text, text != other.text {
                values.append(.init(setting.key, text))
            }
        }
    }

    private static func settings(_ json: JSON) -> [SettingInfo] {
        (json.arrayValue ?? []).compactMap { try? SettingInfo(json: $0) }
    }

    private mutating func findData(of app: String, _ manager: Manager, _ there: OtherMachine) throws(Failure) {
        // An app without data folders has none to move.
        guard let reply = try? manager.call(.data(apps: [app])), let here = Self.data(reply["data"] ?? []) else {
            return
        }
        let bytes = here.documents + here.library
        guard bytes > 0 else { return }
        let other = try answer(["data", app, "--json"], there).flatMap(Self.data)
        let (from, to) = (ShellWord.quoted(here.path + "/"), ShellWord.quoted((other?.path ?? here.path) + "/"))
        let already = (other?.documents ?? 0) + (other?.library ?? 0)
        let has = already > 0 ? ", where there are \(Times.memory(bytes: already))" : ""
        left.append(
            "its data folders (\(Times.memory(bytes: bytes)) in documents and library) stay here: while it runs on "
                + "neither machine, ‘rsync -a \(from) \(there.host):\(to)’ copies them to \(there.host)\(has)"
        )
    }

    private static func data(_ json: JSON) -> DataFoldersInfo? {
        (json.arrayValue ?? []).first.flatMap { try? DataFoldersInfo(json: $0) }
    }

    private mutating func findScenes(of app: String, _ manager: Manager, _ there: OtherMachine) {
        let names = ScenesInside(of: app, manager).names
        guard let first = names.first, !names.contains(app) else { return }
        let which = names.count == 1 ? "its scene \(first) stays" : "its \(names.count) scenes stay"
        left.append(
            "\(which) here: ‘torpor state export \(first)’ writes the state of one, and ‘torpor state import \(first)’ "
                + "on \(there.host) reads it, if the scene exists there (‘torpor scene open’)"
        )
    }

    /// The JSON that a verb prints on the other machine; nil if torpor there refuses the verb, or is too old for it.
    private func answer(_ words: [String], _ there: OtherMachine) throws(Failure) -> JSON? {
        do throws(Failure) {
            let bytes = try there.run(words)
            return try? JSON.parse(bytes[...])
        } catch {
            guard error.status == .noSupervisor else { return nil }
            throw error
        }
    }
}
