// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Supervisor

@Suite("What commands of on_failure get, and how many run") struct FailureCommandTextTests {
    @Test("All apps of one user share the places, and one app of another user has a place all the same")
    func places() {
        var places = FailurePlaces()
        for _ in 0..<FailurePlaces.most {
            #expect(places.isFree(for: "a"))
            places.take(for: "a")
        }
        #expect(!places.isFree(for: "a") && places.isFree(for: "b") && places.isFree(for: ""))
        places.take(for: "b")
        #expect(!places.isFree(for: "b"))
        places.giveBack(for: "b")
        #expect(places.isFree(for: "b") && !places.isFree(for: "a"))
        places.giveBack(for: "a")
        #expect(places.isFree(for: "a"))
        // Nothing is given back twice.
        for _ in 0..<100 { places.giveBack(for: "b") }
        places.take(for: "b")
        #expect(!places.isFree(for: "a"))
    }

    @Test("Texts have no control characters, neither those of ASCII nor those after it")
    func controls() {
        let all = String(String.UnicodeScalarView((0...0x9f).compactMap(Unicode.Scalar.init)))
        let left = FailureCommands.shortened(all + "ä\u{200b}").unicodeScalars.map(\.value)
        #expect(left == [9] + Array(0x20...0x7e) + [0xe4, 0x200b])
        #expect(FailureCommands.shortened(String(repeating: "a", count: 5_000)).count == 1_000)
    }
}
