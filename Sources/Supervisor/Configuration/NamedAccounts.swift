// SPDX-License-Identifier: Apache-2.0

package import Configuration
import Engine
package import EventSources
import Lifecycle
import Linux

/// The users and groups that a configuration names, apart from those that apps run as: looked up when it is read, which
/// may wait for a directory on the network, and never in the loop.
package struct NamedAccounts: Sendable {
    /// Who may ask what.
    package let authority: Authority
    /// Who is believed where the machine is, beside root and the supervisor's own user: gpsd, where an app wants to know.
    let gpsd: UInt32?
    /// Whom sockets are to belong to.
    package var sockets = SocketAccounts()

    /// Looks up every name, once.
    package init(_ configuration: TorporConfiguration) {
        authority = Authority(configuration.supervisor)
        let all = configuration.apps + configuration.templates
        let wantsPositions = all.contains { $0.backgroundModes.contains(.location) }
        gpsd = wantsPositions ? Users.lookup("gpsd")?.uid : nil
        for app in all { sockets.lookUp(app.sockets) }
    }
}

/// What was read of a configuration, with whom it names; or what is wrong with it.
package typealias ConfigurationRead = Result<
    (configuration: TorporConfiguration, accounts: NamedAccounts), DiagnosticList
>

/// Where a configuration is read from.
package struct ConfigurationPlace: Sendable {
    package let path: String
    let workingDirectory: String

    package init(_ sources: ConfigurationSources) {
        path = sources.path
        workingDirectory = sources.workingDirectory
    }

    /// Reads the files as they are now, and looks up whom they name. It may wait for disks and directories.
    package func read() -> Result<(configuration: TorporConfiguration, accounts: NamedAccounts), DiagnosticList> {
        var system = ConfigurationSystem.live
        system.workingDirectory = workingDirectory
        return ConfigurationLoader.load(path: path, environment: ThisProcess.variables, system: system)
            .map { ($0, NamedAccounts($0)) }
    }
}
