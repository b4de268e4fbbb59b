// SPDX-License-Identifier: Apache-2.0

import Varlink
import WireText

/// The names of an object's members, one on each line of the input: an object is read exactly if no two of them have the
/// same bytes, and each member is then found by its name.
enum JSONNames: FuzzedParser {
    /// An object of mostly short names is read three times, and written.
    static var nanosecondsPerByte: Int { 6_000 }

    static func run(_ bytes: [UInt8]) throws(Finding) {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let names = lines.compactMap { String(validWire: $0) }
        let isDistinct = Set(names.map(WireText.init)).count == names.count
        let members = names.enumerated().map { JSONObject.Member(name: $1, value: .int(Int64($0))) }
        let plain = JSON.object(JSONObject(members: members)).serialised()
        for text in [plain, escaped(names)] {
            guard case .object(let object)? = try? JSON.parse(text) else {
                try expect(!isDistinct, "it refuses an object whose names are all different")
                continue
            }
            try expect(isDistinct, "it reads an object that has a name twice")
            try expect(object.members.count == names.count, "it has \(object.members.count) members")
            let isSame = zip(object.members, names).allSatisfy { $0.name.utf8.elementsEqual($1.utf8) }
            try expect(isSame, "a name is another one")
            try look(object, names)
        }
    }

    /// Looks some of the names up: each time, the name is compared with those before it.
    private static func look(_ object: JSONObject, _ names: [String]) throws(Finding) {
        let fields = Fields(object)
        for index in stride(from: names.count - 1, through: 0, by: -max(1, names.count / 8)) {
            let number = Int64(index)
            try expect(object[names[index]]?.intValue == number, "another member is found for the name \(index)")
            try expect(fields[names[index]]?.intValue == number, "another field is found for the name \(index)")
        }
    }

    /// The same object with all characters of the names escaped.
    private static func escaped(_ names: [String]) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        var text = [UInt8(ascii: "{")]
        for (index, name) in names.enumerated() {
            text += index == 0 ? "\"".utf8 : ",\"".utf8
            for unit in name.utf16 {
                text += "\\u".utf8
                for shift in [12, 8, 4, 0] { text.append(digits[Int(unit >> UInt16(shift) & 15)]) }
            }
            text += "\":\(index)".utf8
        }
        text.append(UInt8(ascii: "}"))
        return text
    }
}
