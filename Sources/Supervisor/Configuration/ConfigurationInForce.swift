// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import EventLoop
import Lifecycle
package import Linux
package import Processes
package import Recovery
import SystemPackage

/// The configuration in force, and where the next torpord and the next boot find it.
package final class ConfigurationInForce: Room {
    package let engine: Engine
    package let recorder: Recorder
    package private(set) var configuration: TorporConfiguration
    /// The scenes that there are besides.
    package let roster: SceneRoster
    /// Whom it names.
    package var accounts: NamedAccounts
    /// Its texts, for the next torpord.
    package private(set) var file: Descriptor?
    /// What was wrong with the configuration on disk at the start.
    private let invalid: DiagnosticList?
    private let runtime: RuntimeDirectory
    private let recovery: RecoveryFile
    private let keeper: Keeper
    /// Writes it down for the next boot.
    private let writes: BackgroundWorker

    /// - Parameters:
    ///   - invalid: what is wrong with the configuration on disk, in whose place this one is in force.
    ///   - file: the texts as an earlier torpord has kept them.
    ///   - roster: the scenes whose apps are among those of the configuration.
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
    }

    /// It is the one of the disk, of an earlier torpord, or of the last boot.
    package func begin() {
        if file == nil {
            // It was read from the disk.
            recovery.isDiskInvalid = invalid != nil
            keepForNext()
        }
        if let invalid { tellInvalid(invalid) }
    }

    /// Another one is in force from now on. What it was read from must be where the next torpord finds it before anything is
    /// done about it: a torpord that dies in between is followed by one that finishes the apply, since it launches what has
    /// no record yet and ends what its configuration does not name.
    package func become(_ configuration: TorporConfiguration, _ accounts: NamedAccounts) {
        self.configuration = configuration
        self.accounts = accounts
        log.level = configuration.supervisor.logLevel
        keepForNext()
        keepForNextBoot()
    }

    /// The supervisor begins with the configuration that was in force last, since the one on disk is not valid.
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

    /// Keeps it for the next boot, beside the loop.
    func keepForNextBoot() {
        let (sources, state) = (configuration.sources, runtime.state)
        writes.ask {
            LastValid.write(sources, in: state)
        } _: { [weak self] trouble in
            if let trouble { self?.log.warning(trouble) }
        }
    }

    /// Whether the next torpord finds its texts at their path.
    var isKeptForNext: Bool { file.map { RuntimeDirectory.isAt(runtime.configuration, $0) } ?? false }

    /// Writes its texts where the next torpord reads them.
    func keepForNext() {
        do throws(Errno) {
            try File.replace(runtime.configuration, configuration.sources.encoded(), mode: 0o600)
            let file = try File.open(runtime.configuration, .read)
            self.file = file
            keeper.holdQuietly(DescriptorName.configuration, file.raw)
        } catch {
            log.error(
                "cannot write \(runtime.configuration) (\(error)): if torpord dies, the next one reads the "
                    + "configuration on disk"
            )
        }
    }
}
