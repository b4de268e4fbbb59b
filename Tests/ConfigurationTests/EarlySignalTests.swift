// SPDX-License-Identifier: Apache-2.0

import Configuration
import Testing

@Suite("Signals that may come before the program has a handler")
struct EarlySignalTests {
    private static func warnings(_ keys: String) throws -> [String] {
        try load("[apps.web]\nexec = [\"/bin/web\"]\n" + keys).get().warnings.map(\.description)
    }

    @Test("A message right after the launch ends a program that has no handler yet")
    func early() throws {
        for message in ["didEnterBackground", "didBecomeActive", "didReceiveEvent", "openURL", "performFetch"] {
            for signal in ["USR1", "SIGHUP", "RTMIN+1"] {
                let told = try Self.warnings("signals = { \(message) = \"\(signal)\" }")
                #expect(told.count == 1, "\(message) \(signal): \(told)")
                let sentence = "(\(message)) may reach the program before it has a handler, and ends it then"
                #expect(told.first?.hasPrefix("torpor.toml:3:") == true && told[0].contains(sentence), "\(told)")
                #expect(told.first?.contains("Write ready = \"notify\"") == true, "\(told)")
            }
        }
        let two = "signals = { didEnterBackground = \"USR1\", refresh = \"USR2\" }"
        let several = try Self.warnings("instances = 3\n" + two)
        #expect(several.count == 1, "\(several)")
    }

    @Test(
        "An app that says when it is ready has its handlers by then",
        arguments: [
            "ready = \"notify\"", "ready = \"delegate\"", "ready = { file = \"/run/web.ready\" }", "type = \"oneshot\"",
        ]
    )
    func ready(key: String) throws {
        #expect(try Self.warnings(key + "\nsignals = { didEnterBackground = \"USR1\" }") == [])
    }

    @Test("Other signals end no process, and other messages come later")
    func harmless() throws {
        for signal in ["URG", "WINCH", "CHLD"] {
            #expect(try Self.warnings("signals = { didEnterBackground = \"\(signal)\" }") == [])
        }
        for message in ["settingsDidChange", "didReceiveMemoryWarning", "willTerminate", "significantTimeChange"] {
            #expect(try Self.warnings("signals = { \(message) = \"USR1\" }") == [])
        }
    }
}
