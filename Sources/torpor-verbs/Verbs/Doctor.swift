// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import Configuration
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct Doctor: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Shows what this machine offers, what it lacks and what that costs.",
        discussion: "If no supervisor is running, shows what a supervisor that is started here would have."
    )
    .examples(
        "torpor doctor"
    )
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let checks: [DoctorCheck]
        do throws(Failure) {
            let reply = try Manager(options).call(.doctor)
            checks = try Manager.read { () throws(FieldError) in
                try Fields(reply).list("checks") { json throws(FieldError) in try DoctorCheck(json: json) }
            }
        } catch {
            guard error.status == .unknown else { throw error }
            checks = Self.withoutSupervisor(error.message ?? "no supervisor answers")
        }
        guard !options.json else { return Output.document(.array(checks.map(\.json))) }
        Output.page(DoctorPage(checks).text)
    }

    private static func withoutSupervisor(_ problem: String) -> [DoctorCheck] {
        let (apps, configuration) = ownConfiguration()
        let machine = MachineChecks(apps: apps)
        return [DoctorCheck(name: "supervisor", ok: false, message: problem), configuration] + machine.cgroups
            + machine.all
    }

    /// Whether a supervisor that is started now would find a configuration, and the number of apps in that
    /// configuration.
    private static func ownConfiguration() -> (apps: Int, DoctorCheck) {
        switch ConfigurationLoader.load(path: nil, environment: ThisProcess.variables) {
        case .success(let configuration):
            let count = configuration.apps.count
            return (
                count, DoctorCheck(name: "configuration", ok: true, value: "\(count) app\(count == 1 ? "" : "s")")
            )
        case .failure(let list):
            let first = list.diagnostics.first { $0.severity == .error }?.description ?? "it cannot be read"
            return (
                0,
                DoctorCheck(name: "configuration", ok: false, message: "\(first); ‘torpor check FILE’ shows everything")
            )
        }
    }
}
