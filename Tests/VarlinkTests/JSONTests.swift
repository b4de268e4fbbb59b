// SPDX-License-Identifier: Apache-2.0

import Testing
import Varlink

@Suite struct JSONTests {
    @Test(
        "reads what RFC 8259 calls JSON",
        arguments: [
            ("null", JSON.null), (" true ", .bool(true)), ("-0", .double(-0.0)), ("0", .int(0)),
            ("9223372036854775807", .int(.max)), ("-9223372036854775808", .int(.min)),
            ("9223372036854775808", .double(9_223_372_036_854_775_808)), ("1e2", .double(100)),
            ("1.5E-1", .double(0.15)),
            (#""a\u00e9\n\ud83d\ude00\/\\""#, .string("aé\n😀/\\")), ("\"é\"", .string("é")), ("[]", .array([])),
            ("[1,[2]]", .array([1, .array([2])])), ("{}", .emptyObject),
            (#"{"b":1,"a":null}"#, JSON.object(["b": 1, "a": .null])),
            (#""\u0000""#, .string("\0")),
        ] as [(String, JSON)]
    )
    func valid(text: String, value: JSON) throws {
        #expect(try JSON.parse(text) == value)
    }

    @Test(
        "refuses everything else",
        arguments: [
            "", " ", "nul", "truefalse", "01", "-", "+1", "1.", ".5", "1e", "1e999", "NaN", "\"", "\"\\x\"",
            "\"\\u12\"",
            #""\ud800""#, #""\ud800A""#, #""\udc00""#, "\"\u{1}\"", "\"a\nb\"", "[1,]", "[1", "[,1]", "{\"a\"}",
            "{\"a\":1,}", "{a:1}", "{\"a\":1,\"a\":2}", "1 2", "'a'", "// c", "\u{feff}1", "\0", "[1]\0",
        ]
    )
    func invalid(text: String) {
        #expect(throws: JSONError.self) { try JSON.parse(text) }
    }

    @Test("refuses bytes that are not UTF-8")
    func notUTF8() {
        for bytes: [UInt8] in [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xe2, 0x82], [0xf4, 0x90, 0x80, 0x80]] {
            #expect(throws: JSONError.self) { try JSON.parse([0x22] + bytes + [0x22]) }
            #expect(throws: JSONError.self) { try JSON.parse([0x22, 0x5c, 0x6e] + bytes + [0x22]) }
        }
    }

    @Test("reads decimals as Swift does, with few digits and with many")
    func decimals() throws {
        var texts = ["0.0", "-0.0", "0.1", "-12.345678", "999999999999999.5", "9007199254740993.5"]
        for digits in 1...20 {
            for _ in 0..<50 {
                let number = (0..<digits).map { _ in String(Int.random(in: 0...9)) }.joined()
                let decimals = (0..<Int.random(in: 1...20)).map { _ in String(Int.random(in: 0...9)) }.joined()
                texts.append((Bool.random() ? "-" : "") + "\(Int.random(in: 1...9))\(number).\(decimals)")
            }
        }
        for text in texts {
            let value = try #require(Double(text))
            let read = try #require(try JSON.parse(text).doubleValue)
            #expect(read == value && read.sign == value.sign, "\(text)")
        }
    }

    @Test("refuses marks and flags without end, spelt out or escaped, as values and as names")
    func unbounded() {
        for unit in ["\u{301}\u{323}", #"\u0301\u0323"#, "\u{1f1e6}", #"\ud83c\udde6"#] {
            let text = "\"a" + String(repeating: unit, count: 60_000) + "\""
            #expect(throws: JSONError.self) { try JSON.parse(text) }
            #expect(throws: JSONError.self) { try JSON.parse("{\(text):1}") }
        }
    }

    @Test("takes names for two that are spelt differently")
    func spelling() throws {
        let object = try #require(try JSON.parse("{\"é\":1,\"e\u{301}\":2}").objectValue)
        #expect(object.members.count == 2)
    }

    @Test("finds a name by its bytes, not one that only counts as the same in Unicode")
    func names() throws {
        let json = try JSON.parse(#"{"\u212a":1,"e\u0301":2,"A\u030a":3,"K":4,"\u00e9":5,"\u212b":6}"#)
        let fields = try Fields(json)
        for (name, value) in [("K", 4), ("\u{e9}", 5), ("\u{212b}", 6), ("\u{212a}", 1)] as [(String, Int64)] {
            #expect(json[name]?.intValue == value && fields[name]?.intValue == value, "\(name)")
        }
        var object = try #require(json.objectValue)
        object["K"] = 7
        object["\u{e9}"] = nil
        #expect(object.members.map(\.value) == [1, 2, 3, 7, 6])
        #expect(json["\u{c5}"] == nil && fields["\u{c5}"] == nil)
    }

    @Test("says where an error is")
    func offset() {
        #expect(throws: JSONError("unexpected “x”", offset: 5)) { try JSON.parse("[1,2,x]") }
    }

    @Test("nests as deep as the limit and no deeper")
    func depth() throws {
        let limit = JSON.depthLimit
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        _ = try JSON.parse(nested(limit))
        #expect(throws: JSONError.self) { try JSON.parse(nested(limit + 1)) }
        #expect(throws: JSONError.self) { try JSON.parse(String(repeating: "{\"a\":", count: 100_000)) }
    }

    @Test("finds a name that stands twice also among many")
    func duplicates() throws {
        let members = (0..<100).map { "\"m\($0)\":1" }
        _ = try JSON.parse("{" + members.joined(separator: ",") + "}")
        for name in ["m0", "m30", "m99"] {
            #expect(throws: JSONError.self) {
                try JSON.parse("{" + members.joined(separator: ",") + ",\"\(name)\":2}")
            }
        }
    }

    @Test("tells names that stand twice from names that only look alike")
    func similarNames() throws {
        // All begin and end alike, so that what is compared first says nothing.
        let names = (100..<170).map { "a\($0)z" } + ["", "a", "aa", "az", "é", "\u{0}"]
        for count in [1, 2, 3, 24, 47, 48, 49, names.count] {
            let members = names.shuffled().prefix(count).map { JSONObject.Member(name: $0, value: 1) }
            let text = JSON.object(JSONObject(members: members)).serialised()
            #expect(try JSON.parse(text).objectValue?.members.map(\.name) == members.map(\.name))
            for member in members {
                let twice = JSON.object(JSONObject(members: members + [member])).serialised()
                #expect(throws: JSONError.self) { try JSON.parse(twice) }
            }
        }
    }

    @Test("reads objects of an array alike, whether their names repeat or not")
    func namesInArrays() throws {
        let objects = [
            #"{"ab":1,"c":2}"#, #"{"ab":3,"c":4}"#, #"{"ab":5}"#, "{}", #"{"ab":6,"c":7,"d":8}"#, #"{"c":9,"ab":0}"#,
            #"{"abc":1,"c":2}"#, #"{"a":1,"c":2}"#, #"{ "ab" : 1, "c": 2}"#, #"{"\u0061b":1,"c":2}"#,
            #"{"ab":[{"ab":1},{"c":1}],"c":{"ab":2}}"#, #"{"ab\"":1,"c":2}"#,
        ]
        let expected = try objects.map { try JSON.parse($0) }
        for first in objects.indices {
            let order = [first, first] + objects.indices
            let text = "[" + order.map { objects[$0] }.joined(separator: ",") + "]"
            #expect(try JSON.parse(text) == .array(order.map { expected[$0] }))
            // Wherever it ends, nothing behind it is read.
            for end in 1..<text.utf8.count {
                #expect(throws: JSONError.self) { try JSON.parse(Array(text.utf8)[..<end]) }
            }
        }
        let twices = [
            #"{"ab":1,"c":2,"ab":3}"#, #"{"ab":1,"ab":2}"#, #"{"ab":1,"d":2,"ab":3}"#, #"{"ab":1,"d":2,"d":3}"#,
        ]
        for twice in twices {
            #expect(throws: JSONError.self) { try JSON.parse(#"[{"ab":1,"c":2},"# + twice + "]") }
        }
    }

    @Test("gives small objects behind a large one no more memory than they need")
    func smallObjectsInArrays() throws {
        let large = "{" + (0..<100).map { "\"m\($0)\":1" }.joined(separator: ",") + "}"
        for small in [#"{"m0":1}"#, #"{"m0":1,"x":2}"#, #"{"x":1}"#] {
            let objects = try #require(try JSON.parse("[\(large),\(large),\(small)]").arrayValue)
            #expect(objects.last?.objectValue.map { $0.members.capacity < 10 } == true, "\(small)")
        }
    }

    @Test("finds a name that stands twice after more known names than are compared one by one")
    func manyKnownNames() throws {
        let members = (0..<200).map { "\"m\($0)\":1" }
        let object = "{" + members.joined(separator: ",") + "}"
        #expect(try JSON.parse("[\(object),\(object)]").arrayValue?.count == 2)
        for name in ["m0", "m127", "m128", "m199"] {
            let twice = "{" + members.joined(separator: ",") + ",\"\(name)\":2}"
            #expect(throws: JSONError.self) { try JSON.parse("[\(object),\(twice)]") }
        }
    }

    @Test("writes what it reads, and keeps the order of members")
    func roundTrip() throws {
        let text = #"{"z":[1,-2,0.25,1e+300,true,null],"a":"\"\\\u0001\n\té😀\u007f","":{}}"#
        let value = try JSON.parse(text)
        #expect(try JSON.parse(value.serialised()) == value)
        #expect(try JSON.parse(value.serialisedPretty()) == value)
        #expect(value.objectValue?.members.map(\.name) == ["z", "a", ""])
        #expect(
            JSON.array([.int(.min), .int(.max), .double(.nan)]).description
                == "[-9223372036854775808,9223372036854775807,null]"
        )
        #expect(!value.serialised().contains(0))
    }

    @Test("writes nothing that steers a terminal as it is, and reads it back as it was")
    func terminals() throws {
        let steering: [ClosedRange<UInt32>] = [
            0...0x1f, 0x7f...0x9f, 0x61c...0x61c, 0x200e...0x200f, 0x2028...0x202e, 0x2066...0x2069,
        ]
        for value: UInt32 in 0...0x10ffff {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let json = JSON.string("a" + String(Character(scalar)) + "z")
            let written = json.serialised()
            let isEscaped = scalar == "\"" || scalar == "\\" || steering.contains { $0.contains(value) }
            guard written.contains(UInt8(ascii: "\\")) == isEscaped, try !isEscaped || JSON.parse(written) == json
            else {
                Issue.record("\(String(value, radix: 16)): \(String(decoding: written, as: UTF8.self))")
                return
            }
        }
        let text = "\u{9b}31m\u{7f}\u{202e}\u{2066}\u{1b}[5m“ä”\u{c2}\u{2e2e}"
        let expected = #"{"\u009b31m\u007f\u202e\u2066\u001b[5m“ä”Â⸮":["\u009b31m\u007f\u202e\u2066\u001b[5m“ä”Â⸮"]}"#
        let object = JSON.object(JSONObject(members: [.init(name: text, value: [.string(text)])]))
        #expect(object.description == expected)
        #expect(String(decoding: object.serialisedPretty(), as: UTF8.self).contains(#""\u009b31m\u007f"#))
    }

    @Test("survives any input: what it takes, it writes and reads again")
    func mutations() throws {
        var random = Random(state: 0x5eed)
        let seeds = [
            #"{"method":"io.torpor.Manager.Start","parameters":{"apps":["web@*","tag:x"],"wait":true,"timeout_ms":1e3}}"#,
            #"[1,-2.5e-3,"\ud83d\ude00\u0041\\",{"a":{"b":[null,false]}},"é",9223372036854775808]"#,
        ].map { Array($0.utf8) }
        for round in 0..<5000 {
            var bytes = seeds[round % seeds.count]
            for _ in 0...Int.random(in: 0..<4, using: &random) where !bytes.isEmpty {
                let at = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: bytes[at] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.remove(at: at)
                case 2: bytes.insert(bytes[Int.random(in: 0..<bytes.count, using: &random)], at: at)
                default: bytes.removeSubrange(at...)
                }
            }
            if let value = try? JSON.parse(bytes) {
                #expect(try JSON.parse(value.serialised()) == value)
            }
        }
    }
}

/// splitmix64, so that a failure comes back.
struct Random: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}
