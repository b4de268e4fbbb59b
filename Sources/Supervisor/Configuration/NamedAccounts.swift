// SPDX-License-Identifier: Apache-2.0

package import Configuration
import Engine
package import EventSources
import Lifecycle
import Linux
import PolicyHost

/// The users and groups that a configuration names, except the users that apps run as. They are looked up when the
/// configuration is read, never on the event loop: a lookup may block on a network directory.
package struct NamedAccounts: Sendable {
    package internal(set) var authority: Authority
    /// The uid of gpsd, whose positions are trusted as if they came from root or the supervisor's own user; nil if no
    /// app needs positions.
    let gpsd: UInt32?
    /// The users and groups that own the configured sockets.
    package var sockets = SocketAccounts()

    /// Looks up every name, once.
    package init(_ configuration: TorporConfiguration) {
        let sources = configuration.sources
        let file = sources.path.isEmpty ? "" : Path.join(sources.workingDirectory, sources.path)
        authority = Authority(configuration.supervisor, file: file)
        let all = configuration.apps + configuration.templates
        let wantsPositions = all.contains { $0.backgroundModes.contains(.location) }
        gpsd = wantsPositions ? Users.lookup("gpsd")?.uid : nil
        for app in all { sockets.lookUp(app.sockets) }
    }
}

/// A configuration and the accounts that it names, or its errors.
package typealias ConfigurationRead = Result<
    (configuration: TorporConfiguration, accounts: NamedAccounts), DiagnosticList
>

/// Where a configuration is read from.
package struct ConfigurationPlace: Sendable {
    package let path: String
    let workingDirectory: String
    /// The configuration in force, if only the manifests of some bundles are to be read again; nil if all files are to
    /// be read.
    private var inForce: (sources: ConfigurationSources, bundles: [String])?
    /// The policies in force, which are not tried again.
    private var policies: [PolicySpecification] = []

    package init(_ sources: ConfigurationSources) {
        path = sources.path
        workingDirectory = sources.workingDirectory
    }

    /// Reads the files again to replace this configuration.
    package init(replacing configuration: TorporConfiguration) {
        self.init(configuration.sources)
        policies = configuration.policies.filter { configuration.supervisor.policies.contains($0.name) }
    }

    /// Reads the configuration in force again, with the manifest of a bundle as it is on the disk now.
    package init(_ sources: ConfigurationSources, rereading bundle: String) {
        self.init(sources)
        inForce = (sources, [bundle])
    }

    /// Extends this read, so that it also reads what another request needs.
    package mutating func join(_ other: ConfigurationPlace) {
        guard let bundles = other.inForce?.bundles else {
            inForce = nil
            return
        }
        inForce?.bundles += bundles
    }

    /// Reads the files as they are now, looks up the accounts that they name, and tries new options of policies. May
    /// block on disks and network directories.
    package func read() -> Result<(configuration: TorporConfiguration, accounts: NamedAccounts), DiagnosticList> {
        if let (sources, bundles) = inForce {
            let sources = bundles.reduce(sources) { $0.rereading(bundle: $1) }
            return ConfigurationLoader.load(sources: sources, environment: ThisProcess.variables)
                .map { ($0, NamedAccounts($0)) }
        }
        var system = ConfigurationSystem.live
        system.workingDirectory = workingDirectory
        system.policyFinding = { policy, folder in
            policies.contains(policy) ? nil : PolicySettings(policy, in: folder).finding
        }
        return ConfigurationLoader.load(path: path, environment: ThisProcess.variables, system: system)
            .map { ($0, NamedAccounts($0)) }
    }
}
