// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import Lifecycle
import Linux
import Varlink

/// The files of `environment_file` with which an app was launched, to find out whether they have changed since.
package struct EnvironmentAtLaunch: Sendable {
    private let files: [EnvironmentFileReference]
    private let rights: FileRights?
    /// A hash of the variables, which may be secret: it is kept in memory alone.
    let digest: UInt64

    init(_ files: [EnvironmentFileReference], rights: FileRights?, _ variables: [String: String]) {
        self.init(files, rights: rights, digest: Self.digest(of: variables))
    }

    init(_ files: [EnvironmentFileReference], rights: FileRights?, digest: UInt64) {
        self.files = files
        self.rights = rights
        self.digest = digest
    }

    private static func digest(of variables: [String: String]) -> UInt64 {
        var hash = StableHash()
        for (name, value) in variables.sorted(by: { $0.key < $1.key }) {
            hash.add(name)
            hash.add(value)
        }
        return hash.digest
    }

    /// Reads the files again, with the same rights as at the launch. May block on a disk. False if they cannot be read:
    /// they may be about to be replaced.
    private var hasChanged: Bool {
        guard let variables = try? Self.read(files, rights) else { return false }
        return Self.digest(of: variables) != digest
    }

    static func read(
        _ files: [EnvironmentFileReference],
        _ rights: FileRights?
    ) throws(EnvironmentFileError) -> [String: String] {
        try EnvironmentFile.load(files) { ConfigurationSystem.read($0, for: rights) }
    }

    /// The names of the apps whose files have changed. May block on disks.
    package static func changed(_ launched: [String: EnvironmentAtLaunch]) -> Set<String> {
        Set(launched.filter(\.value.hasChanged).keys)
    }
}

extension AppRuntime {
    /// The environment files with which the running incarnation was launched; nil if it has none, or if that is not
    /// known.
    package var environmentAtLaunch: EnvironmentAtLaunch? {
        get { run.slots[EnvironmentSlot.self] }
        set { run.slots[EnvironmentSlot.self] = newValue }
    }
}

private enum EnvironmentSlot: Slot { typealias Value = EnvironmentAtLaunch }

/// The hashes of the environment files with which running apps were launched, for the next torpord too. They are in
/// memory that torpor-keeper holds, never on a disk.
final class LaunchedEnvironments {
    private unowned(unsafe) let supervisor: Supervisor
    private lazy var kept = PersistedBytes(
        supervisor,
        supervisor.log,
        named: DescriptorName.environments,
        most: 1 << 20
    )

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// The descriptors that torpor-keeper holds for this.
    var held: [(name: String, descriptors: [Int32])] { kept.held }

    /// Claims the memory of an earlier torpord, before torpord closes what nothing has claimed.
    func claim() { _ = kept.exists }

    /// Stores with which files an app is launched; nil if it has none.
    func launches(_ app: AppRuntime, _ environment: EnvironmentAtLaunch?) {
        app.environmentAtLaunch = environment
        guard environment != nil || kept.exists else { return }
        var members: [JSONObject.Member] = []
        for app in supervisor.apps {
            guard let environment = app.environmentAtLaunch else { continue }
            let run = Int64(supervisor.engine.machine(app.id).incarnation)
            let digest = Int64(bitPattern: environment.digest)
            members.append(JSONObject.Member(name: app.name, value: [.int(run), .int(digest)]))
        }
        kept.keep(JSON.object(JSONObject(members: members)).serialised())
    }

    /// Continues with what an earlier torpord has stored, for the apps that still run.
    func takeOver() {
        guard let bytes = kept.bytes, let json = try? JSON.parse(bytes[...]) else { return }
        for member in json.objectValue?.members ?? [] {
            guard let app = supervisor.apps.first(where: { $0.name == member.name }),
                !app.specification.environmentFiles.isEmpty, app.environmentAtLaunch == nil,
                let values = member.value.arrayValue, values.count == 2, let digest = values[1].intValue
            else { continue }
            let machine = supervisor.engine.machine(app.id)
            guard machine.isAlive, values[0].intValue == Int64(machine.incarnation) else { continue }
            // Without the account, the files would be read with other rights than at the launch.
            let names = Account.Names(app.specification)
            guard names == nil || app.account?.names == names else { continue }
            app.environmentAtLaunch = EnvironmentAtLaunch(
                app.specification.environmentFiles,
                rights: names == nil ? nil : app.account?.fileRights,
                digest: UInt64(bitPattern: digest)
            )
        }
    }
}
