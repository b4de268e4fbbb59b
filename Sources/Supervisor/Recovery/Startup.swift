// SPDX-License-Identifier: Apache-2.0

package import Configuration
import Engine
package import EventLoop
import Lifecycle
import Linux
package import Output
package import Processes
import Recovery
import Store
import SystemPackage
import VarlinkServer

/// The command line of torpord.
struct Invocation {
    /// The path by which torpor-keeper starts torpord.
    let program: String
    let arguments: [String]
}

/// What torpord has before it reads its configuration: an event loop, the connection to torpor-keeper, and the
/// descriptors that torpor-keeper holds from an earlier torpord.
package struct Startup {
    package let loop: EventLoop
    package let keeper: Keeper
    let inheritance: InheritedDescriptors
    let invocation: Invocation

    /// Connects to torpor-keeper, the parent of this process. `arguments`: torpord's arguments, after the path by
    /// which torpor-keeper starts torpord.
    ///
    /// - Throws: ``StartError`` with a sentence.
    package init(arguments: [String]) throws(StartError) {
        invocation = Invocation(program: arguments.first ?? "", arguments: Array(arguments.dropFirst()))
        do throws(Errno) {
            loop = try EventLoop()
            _ = ThisProcess.raiseDescriptorLimit()
            try Signal.ignore(Signal.pipe)
            guard let keeper = try Keeper.fromEnvironment(loop: loop) else { throw .protocolNotSupported }
            self.keeper = keeper
            inheritance = try InheritedDescriptors(from: keeper)
            try Self.knowBoot()
        } catch {
            throw StartError("could not start under torpor-keeper: \(error)")
        }
    }

    /// Reads the id of this boot. Throws if this process is short of descriptors, because without the id all records
    /// would seem to be from another boot.
    private static func knowBoot() throws(Errno) {
        do throws(Errno) {
            try ThisProcess.readBootID()
        } catch {
            if error.isShortage { throw error }
        }
    }

    /// The configuration in force that an earlier torpord has left in torpor-keeper; if there is none, the
    /// configuration on disk.
    package func configuration(
        path: String?,
        environment: [String: String]
    ) -> Result<TorporConfiguration, DiagnosticList> {
        if let held = inheritance.look(DescriptorName.configuration) {
            do throws(StartError) {
                return .success(try InForce.read(held.raw, environment: environment))
            } catch {
                ThisProcess.complain("torpord: \(error); reading the one on disk")
                _ = inheritance.take(DescriptorName.configuration)
            }
        }
        return ConfigurationLoader.load(path: path, environment: environment)
    }

    /// The last valid configuration, for use if the one on disk is invalid, because old settings are better than no
    /// apps.
    ///
    /// - Returns: nil if no configuration is stored that was read from the same file.
    package func lastValidConfiguration(path: String?, environment: [String: String]) -> TorporConfiguration? {
        let path =
            path ?? DefaultPaths(environment: environment, userID: Users.effectiveUID).configuration
        let state = ConfigurationLoader.stateDirectory(path: path, environment: environment)
        return LastValid.read(in: state, path: path, environment: environment)
    }

    /// Called after a failed start. Ends torpor-keeper too, because the next start would also fail. There are two
    /// exceptions, in which torpor-keeper continues: apps of an earlier torpord are running; or an earlier torpord has
    /// started, and only a lack of descriptors or memory made this start fail.
    package func giveUp(_ error: StartError? = nil) {
        if let error, error.mayPass, keeper.instance > 1 { return }
        if keeper.endsWithoutApps() { keeper.sayBye() }
    }
}

extension Supervisor {
    /// Opens the recovery file of an earlier torpord: the one that torpor-keeper holds, or the one at the file's
    /// path. Makes a new file if there is neither.
    static func openRecovery(
        _ runtime: RuntimeDirectory,
        _ inheritance: InheritedDescriptors,
        _ configuration: TorporConfiguration,
        _ log: DaemonLog
    ) throws(StartError) -> RecoveryFile {
        let held = inheritance.take(DescriptorName.recovery).first
        var beginsAnew = false
        if let there = try leftFile(held, runtime.recovery) {
            do throws(RecoveryFile.Refusal) {
                let file = try RecoveryFile(there)
                if held != nil || !file.isShuttingDown { return file }
                log.warning("the last torpord was killed while it shut down: ending what it left and starting fresh")
                beginsAnew = true
            } catch {
                if case .failed(let shortage) = error, shortage.isShortage {
                    throw StartError("cannot read \(runtime.recovery) (\(shortage))", mayPass: true)
                }
                if error != .otherBoot {
                    let aside = runtime.recovery + ".unusable"
                    try? File.rename(runtime.recovery, aside)
                    log.error(
                        "the record of running apps \(error): it is set aside as \(aside), and apps are taken over as "
                            + "/proc shows them"
                    )
                }
            }
        }
        let limit = configuration.apps.map(\.rules.backoff.limit).max() ?? 0
        do throws(Errno) {
            let file = try RecoveryFile(
                creating: runtime.recovery,
                recordBytes: AppRecord.bytes(restartLimit: limit),
                capacity: configuration.apps.count
            )
            file.endsWhatIsFound = beginsAnew
            return file
        } catch {
            throw StartError(
                "cannot make \(runtime.recovery) (\(error)): torpord records there what its apps are doing; free some "
                    + "space, or choose another runtime_directory"
            )
        }
    }

    /// A file of an earlier torpord: the one that torpor-keeper holds, or the one at `path`. Nil if there is neither,
    /// or if the file at `path` cannot be opened. Throws if the file cannot be opened only for lack of descriptors or
    /// memory, because a start without the file would lose its content.
    private static func leftFile(_ held: Descriptor?, _ path: String) throws(StartError) -> Descriptor? {
        if let held { return held }
        do throws(Errno) {
            return try File.open(path, .readWrite)
        } catch {
            guard error.isShortage else { return nil }
            throw StartError("cannot open \(path) (\(error))", mayPass: true)
        }
    }

    /// Opens the file that buffers the output of apps. If an earlier torpord left output in the file, first writes
    /// that output to the apps' logs.
    static func openBatch(
        _ runtime: RuntimeDirectory,
        _ inheritance: InheritedDescriptors,
        _ configuration: TorporConfiguration,
        _ log: DaemonLog
    ) throws(StartError) -> OutputBatch {
        let left = try leftFile(inheritance.take(DescriptorName.batch).first, runtime.batch)
        do throws(Errno) {
            guard let there = left else { return try OutputBatch(path: runtime.batch) }
            let batch = OutputBatch(recovering: there)
            do throws(Errno) {
                try batch.recover { path in
                    let app = configuration.apps.first { runtime.logs + "/" + $0.name + ".log" == path }
                    return app.map { LogFile(path: path, limits: LogLimits($0)) }
                }
                if batch.hasLosses {
                    batch.forgetLosses(exceptOf: configuration.apps.map { runtime.logs + "/" + $0.name + ".log" })
                }
                // Their apps may write nothing for long.
                for app in configuration.apps where batch.hasLosses {
                    batch.reportLoss(of: LogFile(path: runtime.logs + "/" + app.name + ".log", limits: LogLimits(app)))
                }
                return batch
            } catch {
                log.error("output that was on its way into a log is lost: \(runtime.batch) is damaged (\(error))")
                return try OutputBatch(path: runtime.batch)
            }
        } catch {
            throw StartError("cannot make \(runtime.batch) (\(error)): output passes through it on its way into logs")
        }
    }

    /// Gives a descriptor to torpor-keeper. If torpor-keeper refuses it, this is only logged: the app continues, but
    /// the descriptor is lost if torpord dies.
    package func hold(_ name: String, _ descriptor: Int32) {
        keeper.holdQuietly(name, descriptor)
    }

    package func hold(_ name: String, _ descriptors: [Int32], replacing: Bool) {
        keeper.hold(name, descriptors, replacing: replacing)
    }

    package func release(_ name: String) { keeper.release(name) }

    /// Has torpor-keeper close a connection last that a user has left descriptors in: to close those may block.
    package func discard(_ connection: Descriptor, of uid: UInt32) {
        let name = DescriptorName.discard(uid)
        keeper.holdQuietly(name, connection.raw)
        connection.close()
        keeper.release(name)
    }

    package var isSuccessor: Bool { keeper.instance > 1 }

    /// Gives torpor-keeper the files that the next torpord starts with.
    func holdOwnFiles() {
        if !runtime.isLockInherited { hold(DescriptorName.lock, runtime.lock.raw) }
        hold(DescriptorName.recovery, recovery.descriptor.raw)
        hold(DescriptorName.batch, batch.descriptor.raw)
        if let journal = persistence.journal { hold(DescriptorName.journal, journal.descriptor.raw) }
        if let listener = controlListener { hold(DescriptorName.control, listener.raw) }
    }
}

/// The configuration in force, stored for the next torpord. It is stored because edits of the files on disk must take
/// effect when a user applies them, and not whenever torpord happens to be restarted.
enum InForce {
    private static let mostBytes = 64 << 20

    /// Reads the configuration from the file that stores it.
    static func read(
        _ descriptor: Int32,
        environment: [String: String]
    ) throws(StartError) -> TorporConfiguration {
        var bytes: [UInt8] = []
        do throws(Errno) {
            let size = Int(clamping: try File.status(descriptor: descriptor).size)
            bytes = try File.read(descriptor, at: 0, maximum: min(size, mostBytes))
        } catch {
            throw StartError("the configuration in force cannot be read (\(error))")
        }
        guard let sources = ConfigurationSources(decoding: bytes) else {
            throw StartError("the record of the configuration in force is damaged")
        }
        switch ConfigurationLoader.load(sources: sources, environment: environment) {
        case .success(let configuration): return configuration
        case .failure(let diagnostics):
            throw StartError("the configuration in force is not valid for this torpord: \(diagnostics.description)")
        }
    }
}

/// The configuration in force, stored in the state directory for the next boot, in case the one on disk is invalid
/// then.
enum LastValid {
    static func path(in state: String) -> String { state + "/configuration" }

    static func read(in state: String, path: String, environment: [String: String]) -> TorporConfiguration? {
        let file = Self.path(in: state)
        // Accept only a file that belongs to torpord's own user, because its content decides which programs torpord
        // launches.
        guard let status = try? File.status(file, followLinks: false), status.kind == .regular,
            status.uid == Users.effectiveUID, let held = try? File.open(file, [.read, .noFollow]),
            let found = try? InForce.read(held.raw, environment: environment)
        else { return nil }
        let working = (try? File.realPath(".")) ?? "/"
        guard Self.absolute(found.sources.path, found.sources.workingDirectory) == Self.absolute(path, working) else {
            return nil
        }
        return found
    }

    private static func absolute(_ path: String, _ directory: String) -> String {
        path.hasPrefix("/") ? path : directory + "/" + path
    }

    /// Writes the configuration to disk, and blocks until it is there. Returns a sentence about the error; nil if there
    /// was none.
    static func write(_ sources: ConfigurationSources, in state: String) -> String? {
        let file = path(in: state)
        do throws(Errno) {
            try File.makeDirectories(state)
            try File.replace(file, sources.encoded(), mode: 0o600, sync: true)
            return nil
        } catch {
            return
                "cannot write \(file) (\(error)): if the configuration on disk is not valid at the next boot, no app "
                + "is started"
        }
    }
}

extension LogLimits {
    package init(_ app: AppSpecification) {
        self.init(maxSize: app.logMaxSize, maxFiles: app.logMaxFiles, maxAge: app.logMaxAge)
    }
}
