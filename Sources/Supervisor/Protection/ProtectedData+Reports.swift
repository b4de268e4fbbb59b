// SPDX-License-Identifier: Apache-2.0

import Configuration
import DataProtection
package import Engine
import Linux
import Recovery
package import TorporAPI

/// The state of protected data, for users and for the next torpord.
extension ProtectedData {
    /// The state of an app's protected data; nil for an app without any.
    package func info(of app: AppRuntime) -> ProtectionInfo? {
        guard let kind = app.specification.data.protection.kind, let folder = folder(of: app) else { return nil }
        let standing = standings[app.name]
        let isOpen = isReadable(app)
        var info = ProtectionInfo(
            app: app.name,
            kind: kind.rawValue,
            state: isOpen ? "unlocked" : edge.isLocking && kind == .complete ? "locking" : "locked",
            folder: folder
        )
        info.isEncrypted = standing?.isEncrypted
        if !isOpen, let standing, standing.isBusy {
            info.message = standing.problem ?? Self.busy([standing])
        } else {
            // A folder that is open has a problem only if a move of files into it was interrupted.
            info.message = standing?.problem
        }
        return info
    }

    package var infos: [ProtectionInfo] { apps.compactMap(info) }

    package var check: DoctorCheck? {
        let infos = infos
        guard !infos.isEmpty else { return nil }
        let plain = infos.filter { $0.isEncrypted == false }.map(\.app)
        let busy = infos.filter { $0.state != "locking" && $0.message != nil }
        let state = edge.isUnlocked ? "unlocked" : edge.isLocking ? "being locked" : "locked"
        let problems =
            (plain.isEmpty ? [] : ["not encrypted: \(plain.joined(separator: ", "))"])
            + busy.map { "\($0.app): \($0.message ?? "")" }
        return DoctorCheck(
            name: "protected data",
            ok: problems.isEmpty,
            value: "\(state), \(Readable.count(infos.count, "app"))",
            message: problems.isEmpty ? nil : problems.joined(separator: "; ")
        )
    }

    static func busy(_ found: [FolderStanding]) -> String {
        var holders: [Int32: FileHolder] = [:]
        for holder in found.flatMap(\.holders) { holders[holder.pid] = holder }
        guard !holders.isEmpty else { return "files busy, by no process that could be found" }
        let count = holders.values.reduce(0) { $0 + $1.count }
        let list = holders.values.sorted { $0.pid < $1.pid }.prefix(8).map { "PID \($0.pid) (\($0.name))" }
        return "\(Readable.count(count, "file")) busy: \(list.joined(separator: ", "))"
    }
}

extension RecoveryFile {
    /// The last state of protected data that a torpord has recorded: locked, unlocked or being locked.
    var protection: ProtectionEdge.Recorded {
        get { ProtectionEdge.Recorded(rawValue: flags >> 7 & 3) ?? .nothing }
        set { flags = flags & ~(3 << 7) | newValue.rawValue << 7 }
    }

    /// Whether protected data was unlocked at least once since the boot.
    var isFirstUnlockOver: Bool {
        get { flags & 1024 != 0 }
        set { flags = newValue ? flags | 1024 : flags & ~1024 }
    }

    /// Whether the session's lock or the machine's sleep has locked data, and nothing has unlocked it since then.
    var outsideLocks: OutsideLocks.Recorded {
        // `person` is the user's number plus 1; 0 means no user, which is also what an older torpord has written.
        get {
            OutsideLocks.Recorded(
                session: flags & 512 != 0,
                sleep: flags & 2048 != 0,
                user: person == 0 ? nil : person - 1
            )
        }
        set {
            // Write the user first. If torpord is killed between the two writes, the recorded user is then the one of
            // the newer lock.
            person = newValue.user.map { $0 &+ 1 } ?? 0
            flags = flags & ~(512 | 2048) | (newValue.session ? 512 : 0) | (newValue.sleep ? 2048 : 0)
        }
    }
}

extension Incarnation {
    /// The files of its protected folder that the app still had open after a lock, for which torpord has ended it; nil
    /// if that did not happen.
    var openProtectedFiles: [String]? {
        get { slots[OpenProtectedFilesSlot.self] }
        set { slots[OpenProtectedFilesSlot.self] = newValue }
    }
}

private enum OpenProtectedFilesSlot: Slot { typealias Value = [String] }
