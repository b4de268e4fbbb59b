// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux

/// What a launch reads from disks, from the user database and from the app's files. A background thread does this,
/// because each of these reads may block.
struct LaunchFacts: Sendable {
    /// The account that the app runs as; nil for the supervisor's own user.
    var account: Account?
    /// The accounts that own the app's sockets; nil if they are known already.
    var named: SocketAccounts?
    /// The files of the app's sockets that are gone: another program has removed or replaced them.
    var lostSockets: Set<SocketFile> = []
    /// The variables from the app's environment files.
    var variables: [String: String] = [:]
    /// What a later look at the environment files is compared with; nil if the app has none.
    var environment: EnvironmentAtLaunch?
    /// Why the files with the app's settings could not be written; nil if they were written, or if the app needs none.
    var settingsProblem: String?
    var executable: String
    /// The app's working directory.
    var directory: String
    /// The app's sandbox; nil for none.
    var sandbox: SandboxOrder.Made?

    /// Reads what is needed to run a command for an app, as the app's user and in its directory. If no account is
    /// `known`, looks it up.
    static func find(
        _ specification: AppSpecification,
        for command: [String],
        as known: Account?
    ) throws(LaunchError) -> LaunchFacts {
        let account = try Account.find(Account.Names(specification), known: known)
        let directory = Launcher.directory(of: specification, account?.user)
        return LaunchFacts(
            account: account,
            executable: try Executable.find(
                command[0],
                path: Containers.forPodman(specification.environment, specification)["PATH"]
                    ?? LaunchEnvironment.inherited["PATH"],
                directory: directory,
                as: account?.fileRights
            ),
            directory: directory
        )
    }

    /// Reads what is needed to launch the app. If no account is `known`, looks it up.
    static func find(
        _ specification: AppSpecification,
        as known: Account? = nil
    ) throws(LaunchError) -> LaunchFacts {
        let account = try Account.find(Account.Names(specification), known: known)
        let reader = account?.fileRights
        let variables: [String: String]
        do throws(EnvironmentFileError) {
            variables = try EnvironmentAtLaunch.read(specification.environmentFiles, reader)
        } catch {
            throw LaunchError(error.description)
        }
        // Reject too many variables now: execve(2) limits their size, so no launch could succeed.
        let size = variables.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count + 2 }
        guard variables.count <= mostVariables, size <= mostBytes else {
            throw LaunchError(
                "its environment files set \(variables.count) variables of \(size >> 10) KiB: at most \(mostVariables) "
                    + "of \(mostBytes >> 10) KiB are allowed"
            )
        }
        let path = specification.environment["PATH"] ?? variables["PATH"]
        let directory = Launcher.directory(of: specification, account?.user)
        return LaunchFacts(
            account: account,
            variables: variables,
            environment: specification.environmentFiles.isEmpty
                ? nil : EnvironmentAtLaunch(specification.environmentFiles, rights: reader, variables),
            executable: specification.container != nil
                ? try Containers.program()
                : try Executable.find(
                    specification.exec[0],
                    path: path ?? LaunchEnvironment.path,
                    directory: directory,
                    as: reader
                ),
            directory: directory
        )
    }

    /// Whether ``find(_:)`` cannot block for an app without an account: it reads no environment files, and does not
    /// look for the program in the folders of a PATH that the app has of its own.
    static func areQuick(_ specification: AppSpecification) -> Bool {
        let hasPlace = specification.exec.first?.contains("/") ?? true
        return specification.environmentFiles.isEmpty && (hasPlace || specification.environment["PATH"] == nil)
    }

    /// Reads what is needed to launch the app, looks up the owners of its sockets in addition to the known `accounts`,
    /// writes its settings, and finds out which files of its bound `sockets` are gone.
    static func find(
        _ specification: AppSpecification,
        as known: Account?,
        _ accounts: SocketAccounts?,
        settings: SettingsFiles?,
        sockets: [SocketFile]
    ) throws(LaunchError) -> LaunchFacts {
        var facts = try find(specification, as: known)
        facts.named = accounts?.lookingUp(specification.sockets)
        facts.settingsProblem = settings?.write(as: facts.account)
        facts.lostSockets = Set(sockets.filter(\.isGone))
        return facts
    }

    private static let mostVariables = 8192
    private static let mostBytes = 192 << 10
}

/// A read on a background thread for a launch that is in progress.
final class LaunchReading {
    /// Whether the launch was superseded. The read may still wait for a disk, but its result is ignored.
    fileprivate(set) var isCancelled = false
    /// Starts the next launch's read when this one ends; nil if no launch waits.
    fileprivate(set) var next: (() -> Void)?
}

extension Launcher {
    /// Runs `work` for an app's launch on a background thread. While an earlier read for the app is in progress, waits
    /// for its end. `completion` gets the result, and is not called if the launch was superseded in the meantime.
    package func read<Value: Sendable>(
        for app: AppRuntime,
        _ work: @escaping @Sendable () throws(LaunchError) -> Value,
        _ completion: @escaping (Result<Value, LaunchError>) -> Void
    ) {
        if let reading = app.reading {
            reading.next = { [weak self, weak app] in
                if let self, let app { self.read(for: app, work, completion) }
            }
            return
        }
        let reading = LaunchReading()
        app.reading = reading
        reads.ask {
            do throws(LaunchError) {
                return Result<Value, LaunchError>.success(try work())
            } catch {
                return .failure(error)
            }
        } _: { [weak app] result in
            guard let app, app.reading === reading else { return }
            app.reading = nil
            if !reading.isCancelled { completion(result) }
            reading.next?()
        }
    }

    /// Cancels the read for a launch that was superseded. Reports, once, that this launch failed.
    func cancelReading(_ app: AppRuntime) {
        guard let reading = app.reading else { return }
        if reading.isCancelled {
            guard reading.next != nil else { return }
            reading.next = nil
        }
        reading.isCancelled = true
        loop.later { [weak self] in self?.deliver(.launchFailed, to: app.id) }
    }
}

extension AppRuntime {
    /// Whether the app's launch is being prepared: its hooks run, its files are being read, or it waits for the end of
    /// a bundle's trial.
    var isPreparing: Bool { self.hooks != nil || self.reading != nil || run.trial != nil }
}

extension AppRuntime {
    var reading: LaunchReading? {
        get { slots[ReadingSlot.self] }
        set { slots[ReadingSlot.self] = newValue }
    }
}

private enum ReadingSlot: Slot { typealias Value = LaunchReading }
