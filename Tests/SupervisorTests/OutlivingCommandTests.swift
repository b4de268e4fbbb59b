// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Supervisor

@Suite("Commands that outlive torpord") struct OutlivingCommandTests {
    @Test("Of a deadline, the machine's sleep uses up nothing")
    func rest() {
        func rest(_ age: Int, of runAge: Int?) -> Duration {
            OutlivingCommand.rest(of: .seconds(60), age: .seconds(age), runAge: runAge.map { .seconds($0) })
        }
        #expect(rest(20, of: 25) == .seconds(40))
        // The machine has slept for an hour: no command is older than the run that it belongs to.
        #expect(rest(3_620, of: 20) == .seconds(40))
        #expect(rest(20, of: nil) == .seconds(40))
        #expect(rest(70, of: 80) == .zero)
    }

    @Test("A number says which command of which run it is, and those of runs and companions are none")
    func numbers() throws {
        for kind in [OutlivingCommand.Kind.beforeStart, .afterStop] {
            let command = try #require(OutlivingCommand(kind, index: 255, of: 7))
            #expect(OutlivingCommand(number: command.number) == command)
            #expect(OutlivingCommand(kind, index: 256, of: 7) == nil)
        }
        #expect(OutlivingCommand(number: 7) == nil)
    }
}
