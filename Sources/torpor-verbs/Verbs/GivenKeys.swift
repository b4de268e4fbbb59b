// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Configuration
import Linux
import ProtectionKeys
import TorporAPI

/// The keys that this process has given to the kernel. If the unlock of the data fails, or a signal ends this process
/// before the unlock, the keys are removed again: otherwise root could read data that counts as locked.
final class GivenKeys: Sendable {
    private struct State {
        var keys: [Encryption.Identifier] = []
        var isKept = false
    }

    private let state = Monitor(State())
    private let apps: [ProtectionInfo]
    private let root: String
    private nonisolated(unsafe) let keys: ClassKeys
    private let ring: KeyRing

    init(_ keys: ClassKeys, _ ring: KeyRing, _ apps: [ProtectionInfo], _ root: String) throws {
        (self.keys, self.ring, self.apps, self.root) = (keys, ring, apps, root)
        try Failure.of { () throws(Errno) in
            let signals = try TerminalSignals()
            let raw = signals.descriptor.raw
            // Passing `signals` to the thread is safe, because only that thread reads it, and the thread keeps the
            // object alive.
            nonisolated(unsafe) let source = signals
            try WorkerThread.start(named: "signals") { [self] in
                while (try? Descriptor.wait(raw, timeout: nil)) ?? false {
                    guard case .end(let number) = source.next() else { continue }
                    takeBack()
                    TerminalSignals.end(by: number)
                }
            }
        }
    }

    /// Gives the kernel the keys of all apps. If a key cannot be given, reports that, and continues with the others.
    func give() throws {
        let folder = try Failure.of { () throws(KeyError) in
            do throws(Errno) { return try Folder(root) } catch { throw KeyError("\(root) cannot be opened: \(error)") }
        }
        var problems: [String] = []
        for app in apps {
            do throws(KeyError) {
                guard let key = try ring.add(app.app, kind: app.kind, keys, to: folder) else { continue }
                state.withLock { if !$0.keys.contains(key) { $0.keys.append(key) } }
            } catch {
                problems.append(error.description)
            }
        }
        if problems.count == apps.count, let first = problems.first { throw Failure(status: .failed, message: first) }
        for problem in problems { ThisProcess.complain(problem) }
    }

    /// Called when the unlock has succeeded: the keys stay in the kernel.
    func keep() { state.withLock { $0.isKept = true } }

    /// Removes the keys that the kernel did not have before. Does nothing after ``keep()``.
    func takeBack() {
        state.withLock { state in
            guard !state.isKept, let folder = try? Folder(root) else { return }
            for key in state.keys { _ = try? Encryption.remove(key, from: folder) }
            state.keys = []
        }
    }
}

/// The user for whom pam_exec runs ‘torpor protect unlock’. pam_exec passes only PAM's own variables as environment. If
/// a display manager or `login` calls pam_exec, this process runs as root.
enum PAMUser {
    /// If the user has a supervisor of their own, switches this process to that user. Returns the path of the socket of
    /// the supervisor whose data must be unlocked.
    static func become(_ named: String?) throws -> String {
        guard let name = ThisProcess.environment("PAM_USER"), let user = Users.lookup(name) else {
            throw Failure(status: .usage, message: "--pam is for pam_exec, which sets PAM_USER")
        }
        let path = named ?? ControlSocket.own(of: user.uid, home: user.home)
        // A user's own socket is in a folder that belongs to the user, because only the user can write to
        // /run/user/UID.
        let owner = File.parent(of: path).flatMap { try? File.status($0) }?.uid
        guard File.exists(path), owner == user.uid else { return named ?? ControlSocket.machines }
        if Users.effectiveUID == 0, user.uid != 0 {
            try Failure.of { () throws(Errno) in try Users.become(user) }
            // The new uid made this process's memory readable for other processes of that user, so protect it again.
            try Asked.keepPrivate()
        }
        return path
    }
}
