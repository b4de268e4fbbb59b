// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Configuration

@Suite("Networks as places") struct NetworkTests {
    private func complaint(_ networks: String, _ more: String = "background_modes = [\"location\"]") -> String {
        let text = "[apps.web]\nexec = [\"/bin/a\"]\n\(more)\nnetworks = [\(networks)]\n"
        return complaints(load(text)).joined(separator: "\n")
    }

    @Test(
        "a wrong network",
        arguments: [
            ("{ name = \"a\" }", "must select networks by interface, ssid, metered or vpn"),
            ("{ on = \"enter\" }", "must select networks by interface, ssid, metered or vpn"),
            ("\"home\"", "expected a table such as { ssid = \"home\", on = \"enter\" }"),
            ("{ ssid = \"\(String(repeating: "ä", count: 17))\" }", "ssid has more than 32 bytes"),
            ("{ metered = \"no\" }", "metered"), ("{ vpn = true, on = \"join\" }", "\"join\" is not one of"),
            ("{ ssid = \"a\", on = \"enter\", speed = 3 }", "there is no such key"),
            ("{ name = \"a\", vpn = true }, { name = \"a\", vpn = false }", "two entries are named \"a\""),
        ]
    )
    func wrong(networks: String, expected: String) {
        #expect(complaint(networks).contains(expected), "\(complaint(networks))")
    }

    @Test("names are numbers where none is given, and the mode is needed") func names() throws {
        let text = """
            [apps.web]
            exec = ["/bin/a"]
            background_modes = ["location"]
            networks = [{ vpn = true }, { ssid = "\(String(repeating: "ä", count: 16))", name = "x" }, { interface = "e*" }]
            """
        let configuration = try load(text).get()
        #expect(configuration.apps.first?.location.networks.map(\.name) == ["1", "x", "3"])
        #expect(configuration.warnings.isEmpty)
        let warning = "apps.web.networks: does nothing without background_modes = [\"location\"]"
        #expect(complaint("{ vpn = true }", "").contains(warning))
    }
}
