// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import EventLoop
import Lifecycle
package import Linux
package import Processes
package import Recovery
import SystemPackage

/// The configuration in force, stored for the next torpord and for the next boot.
package final class ConfigurationInForce: Room {
    package let engine: Engine
    package let recorder: Recorder
    package private(set) var configuration: TorporConfiguration
    /// The scenes that exist besides the configured apps.
    package let roster: SceneRoster
    /// The users and groups that the configuration names.
    package var accounts: NamedAccounts
    /// A file with the texts of the configuration files, from which the next torpord reads them; nil if it could not be
    /// written.
    package private(set) var file: Descriptor?
    /// Why the file could not be written, as it was last logged; nil since it could be. While the directory is full, each
    /// repair of it tries again.
    private var reported: String?
    /// The errors of the configuration on disk at the start; nil if it was valid.
    private let invalid: DiagnosticList?
    private let runtime: RuntimeDirectory
    private let recovery: RecoveryFile
    private let keeper: Keeper
    /// Writes the configuration for the next boot.
    private let writes: BackgroundWorker
    private let groups: GroupLookups

    /// - Parameters:
    ///   - invalid: the errors of the configuration on disk, if `configuration` replaces it because it is invalid.
    ///   - file: the file with the configuration's texts, if an earlier torpord has stored them.
    ///   - roster: the scenes whose apps are part of the configuration.
    package init(
        _ configuration: TorporConfiguration,
        _ invalid: DiagnosticList?,
        _ file: Descriptor?,
        _ roster: SceneRoster,
        _ engine: Engine,
        _ recorder: Recorder,
        _ runtime: RuntimeDirectory,
        _ recovery: RecoveryFile,
        _ keeper: Keeper
    ) {
        self.roster = roster
        self.configuration = configuration
        self.invalid = invalid
        self.file = file
        self.engine = engine
        self.recorder = recorder
        self.runtime = runtime
        self.recovery = recovery
        self.keeper = keeper
        accounts = NamedAccounts(configuration)
        writes = BackgroundWorker(engine.loop, named: "configuration")
        groups = GroupLookups(engine.loop)
        groups.adopt = { [weak self] found in
            // Another configuration may have been put in force since.
            guard let self, found.hasSameNames(as: accounts.authority) else { return }
            accounts.authority = found
        }
    }

    /// Looks up again the groups that give rights, if the last lookup is older than `age`, and calls `completion` when
    /// ``accounts`` has the result: at once, or later, but not much later than ``GroupLookups/patience``.
    package func renewAuthority(olderThan age: Duration = .zero, _ completion: @escaping () -> Void = {}) {
        guard accounts.authority.namesGroups, groups.isOlder(than: age) else { return completion() }
        groups.ask(accounts.authority, completion)
    }

    /// Stores a configuration that was read from disk. Reports the errors of the configuration on disk, if it is
    /// invalid.
    package func begin() {
        if file == nil {
            // No earlier torpord has stored the configuration: it was read from disk.
            recovery.isDiskInvalid = invalid != nil
            keepForNext()
        }
        if let invalid { tellInvalid(invalid) }
    }

    /// Puts another configuration in force. Its texts are stored for the next torpord before they have any effect. If
    /// torpord dies in between, the next torpord completes the change: it launches apps that have no record, and ends
    /// those that its configuration does not name.
    package func become(_ configuration: TorporConfiguration, _ accounts: NamedAccounts) {
        self.configuration = configuration
        self.accounts = accounts
        log.level = configuration.supervisor.logLevel
        keepForNext()
        keepForNextBoot()
    }

    /// Reports that the supervisor starts with the last valid configuration, because the one on disk is invalid.
    private func tellInvalid(_ list: DiagnosticList) {
        recovery.isDiskInvalid = true
        note(
            .configurationInvalid,
            text:
                "the configuration on disk is not valid: apps are launched from the last valid one, until ‘torpor "
                + "apply’ accepts a new one",
            reason: "the start"
        )
        for diagnostic in list.diagnostics { log.error(diagnostic.description) }
    }

    /// Stores the configuration for the next boot, on a background thread.
    func keepForNextBoot() {
        let (sources, state) = (configuration.sources, runtime.state)
        writes.ask {
            LastValid.write(sources, in: state)
        } _: { [weak self] trouble in
            if let trouble { self?.log.warning(trouble) }
        }
    }

    /// Whether the stored texts of the configuration are still at the path where the next torpord reads them.
    var isKeptForNext: Bool { file.map { RuntimeDirectory.isAt(runtime.configuration, $0) } ?? false }

    /// Writes the configuration's texts to the path where the next torpord reads them.
    func keepForNext() {
        let texts = configuration.sources.encoded()
        do throws(Errno) {
            try File.replace(runtime.configuration, texts, mode: 0o600)
            hold(try File.open(runtime.configuration, .read))
            reported = nil
        } catch {
            keepInMemory(texts, instead: error)
        }
    }

    /// Keeps the texts in memory that is no file's, since the directory is full or cannot be written. What torpor-keeper
    /// holds is older, and would take away apps that were added since.
    private func keepInMemory(_ texts: [UInt8], instead error: Errno) {
        var problem = "cannot write \(runtime.configuration) (\(error))"
        do throws(Errno) {
            let memory = try Memory.file(named: "configuration")
            try File.write(memory.raw, at: 0, texts)
            hold(memory)
            problem += ": torpor-keeper keeps it in memory; if that dies too, the one on disk is read"
            if problem != reported { log.warning(problem) }
        } catch {
            file = nil
            keeper.release(DescriptorName.configuration)
            problem += ", nor keep it in memory (\(error)): if torpord dies, the one on disk is read"
            if problem != reported { log.error(problem) }
        }
        reported = problem
    }

    private func hold(_ file: Descriptor) {
        self.file = file
        keeper.holdQuietly(DescriptorName.configuration, file.raw)
    }
}
