// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Supervisor

@Suite("The units in which a supervisor and its apps are")
struct OwnUnitsTests {
    @Test("are those that journald sees in the paths of cgroups, the apps' first, each once")
    func system() {
        let units = OwnUnits(paths: [
            "/system.slice/torpor-apps.scope/torpor-apps-x", "/system.slice/torpord.service",
            "/system.slice/torpord.service/torpor-apps-x",
        ])
        #expect(units.names == ["torpor-apps.scope", "torpord.service"])
        #expect(units.user == nil)
    }

    @Test("are those of a user's service manager below it")
    func user() {
        let units = OwnUnits(paths: ["/user.slice/user-1000.slice/user@1000.service/app.slice/torpord.service/x"])
        #expect(units.names == ["torpord.service"])
        #expect(units.user == 1000)
    }

    @Test("are none without a service manager", arguments: ["/", "", "/docker/abc", "/torpor-apps-x", "/a.slice"])
    func none(_ path: String) {
        #expect(OwnUnits(paths: [path]).names.isEmpty)
    }
}
