// SPDX-License-Identifier: Apache-2.0

import Testing
import WireText

@Suite("Text from outside") struct WireTextTests {
    private static let marks = "\u{301}\u{323}"
    private static let flags = "\u{1f1e6}"

    private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test(
        "What people write comes as it is",
        arguments: [
            "", "web", "é", "e\u{301}", "Việt Nam", "שָׁלוֹם", "ภาษาไทย", "한국어", "👩‍👩‍👧‍👦", "🇩🇪🇫🇷",
            "a" + String(repeating: "\u{301}", count: 30), String(repeating: "\u{1f1e6}", count: 64),
            String(repeating: "漢", count: 1000), String(repeating: "й", count: 1000),
            String(repeating: "e\u{301}\u{323}", count: 1000),
        ]
    )
    func kept(text: String) {
        #expect(Array(String(wire: Self.bytes(text)).utf8) == Self.bytes(text))
        #expect(String(validWire: Self.bytes(text))?.utf8.elementsEqual(text.utf8) == true)
        #expect(
            Array(text.utf8CString.withUnsafeBufferPointer { String(terminatedWire: $0.baseAddress!) }.utf8)
                == Self.bytes(text)
        )
    }

    @Test("Of a run that is too long the beginning is left", arguments: [(marks, 30), (flags, 64), ("\u{301}", 30)])
    func cut(unit: String, most: Int) {
        let long = "a" + String(repeating: unit, count: 1000) + "b"
        let text = String(wire: Self.bytes(long))
        #expect(text.unicodeScalars.count == most + 2)
        #expect(text.unicodeScalars.first == "a" && text.unicodeScalars.last == "b")
        #expect(String(validWire: Self.bytes(long)) == nil)
        #expect(WireText.isBounded(text) && !WireText.isBounded(long))
    }

    @Test("What is no UTF-8 becomes U+FFFD, or nothing")
    func invalid() {
        let bytes: [UInt8] = [0x61, 0xff, 0xed, 0xa0, 0x80, 0x62]
        let text = String(wire: bytes)
        #expect(text.unicodeScalars.first == "a" && text.unicodeScalars.last == "b" && text.contains("\u{fffd}"))
        #expect(String(validWire: bytes) == nil)
    }

    @Test("A megabyte of marks or flags is compared, hashed and searched within the life of this test")
    func hostile() {
        for unit in [Self.marks, Self.flags, "\u{301}", "\u{9be}\u{301}", "\u{1161}"] {
            let long = Self.bytes(String(repeating: unit, count: (1 << 20) / unit.utf8.count))
            let (one, other) = (String(wire: long + [0x61]), String(wire: long + [0x62]))
            #expect(Set([one, other]).count == 2)
            #expect(one != other && one < other)
            #expect(one.lastIndex(of: ".") == nil && !one.contains("x") && one.split(separator: ".").count == 1)
        }
    }

    @Test("Marks after a long text without any are bounded too")
    func late() {
        for count in 0..<18 {
            let plain = String(repeating: "x", count: count)
            let text = plain + String(repeating: "\u{301}", count: 2 * WireText.mostMarks) + plain
            let marks = String(wire: Self.bytes(text)).unicodeScalars.count { $0 == "\u{301}" }
            #expect(marks == WireText.mostMarks)
        }
    }

    @Test("A part of an array ends where it ends")
    func part() {
        let bytes = Self.bytes("/tmp/torpor-copies-30952") + [0, 0x45, 0x46]
        #expect(bytes.withUnsafeBytes { String(wire: $0.prefix { $0 != 0 }) } == "/tmp/torpor-copies-30952")
        #expect(String(wire: bytes.prefix { $0 != 0 }) == "/tmp/torpor-copies-30952")
    }

    @Test("As a key it is its bytes")
    func key() {
        let (composed, decomposed) = (WireText("é"), WireText("e\u{301}"))
        #expect(composed.description == decomposed.description)
        #expect(composed != decomposed && composed == WireText("é"))
        #expect(Set([composed, decomposed, WireText("é")]).count == 2)
    }
}
