// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Lifecycle
import Linux
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

/// Requests about the data folders of apps, including apps that are no longer in the configuration.
extension ControlService {
    func data(of patterns: [String], _ reply: Reply) {
        // If no app matches, the pattern may be the exact name of a removed app whose data still exists.
        let names = patterns.flatMap { pattern in
            (try? selection.resolve([pattern]).map(\.name)) ?? [pattern]
        }
        supervisor.dataFolders.usage(of: names) { found in
            guard let found else { return reply.fail(DataFolders.isBusy) }
            if let missing = names.first(where: { name in !found.contains { $0.app == name } }) {
                return reply.fail(Self.hasNoData(missing))
            }
            reply.send(["data": .array(found.map(\.json))])
        }
    }

    func purge(_ request: PurgeDataRequest, by person: String, _ reply: Reply) {
        supervisor.dataFolders.purge(request, by: person) { result in
            switch result {
            case .success(let emptied):
                let message = emptied.first.map { "\(emptied.left) could not be removed: \($0)" }
                reply.send([
                    "app": .string(request.app), "removed": .int(Int64(emptied.removed)),
                    "left": .int(Int64(emptied.left)), "message": .optional(message),
                ])
            case .failure(.unknown): reply.fail(Self.hasNoData(request.app))
            case .failure(.refused(let sentence)): reply.fail(sentence)
            }
        }
    }

    /// Adds the app's bundle to the status. While the app runs, this is the bundle version that it was launched from.
    func addBundle(of app: AppRuntime, to status: inout AppStatus) {
        guard let bundle = app.specification.bundle else { return }
        let running = coordinator.machine(app.id).isAlive ? supervisor.launcher.runningBundle(of: app) : nil
        status.bundle = running?.title ?? bundle.name + (bundle.version.map { " " + $0 } ?? "")
        status.bundleVerified = running?.how
        status.bundlePutBack = supervisor.launcher.putBack[bundle.name]?.failed
    }

    private static func hasNoData(_ name: String) -> String {
        "no app \(name) has data folders: ‘torpor data’ lists those that have"
    }
}
