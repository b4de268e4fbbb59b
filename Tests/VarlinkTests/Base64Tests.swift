// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Varlink

@Suite("Base64") struct Base64Tests {
    @Test("it is what Foundation makes of the same bytes, and comes back, at every length")
    func roundTrip() {
        for count in 0..<70 {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255) }
            let text = Base64.encode(bytes)
            #expect(text == Data(bytes).base64EncodedString())
            #expect(Base64.decode(text) == bytes)
        }
    }

    @Test(
        "what is not exactly that is refused",
        arguments: [
            "A", "AA", "AAA", "AA=A", "A===", "====", "AAAA=", "AA\nA",
            "AA==AAAA", "AB==", "AAB=", "AA-_", "AAé", "=AAA", "AAA= ",
        ]
    )
    func refused(text: String) {
        #expect(Base64.decode(text) == nil)
    }
}
