// SPDX-License-Identifier: Apache-2.0

import CFuzzTargets
import Varlink

/// JSON as the C library reads it: what torpord reads it must read, to the same value.
enum ClientJSON: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        // Of just this size, so that a sanitizer sees every byte too far.
        let read = bytes.withUnsafeBytes { torpor_json_read($0.baseAddress, $0.count) }
        defer { torpor_json_free(read) }
        guard let value = try? JSON.parse(bytes) else { return }
        guard let read else { throw Finding("the C library refuses what torpord reads") }
        try compare(read, value)
    }

    private static func compare(_ read: OpaquePointer, _ value: JSON) throws(Finding) {
        switch value {
        case .null: try expect(torpor_json_is_null(read), "it is not null")
        case .bool(let flag): try expect(torpor_json_bool(read, !flag) == flag, "it is not \(flag)")
        case .int(let number): try expect(torpor_json_int(read, number &+ 1) == number, "it is not \(number)")
        case .double(let number):
            try expect(torpor_json_double(read, number + 1) == number || number + 1 == number, "it is not \(number)")
        case .string(let text):
            var count = 0
            guard let start = torpor_json_string(read, &count) else { throw Finding("it is no string") }
            let bytes = UnsafeRawBufferPointer(start: start, count: count)
            try expect(bytes.elementsEqual(text.utf8) && start[count] == 0, "it is another string")
        case .array(let elements):
            try expect(torpor_json_count(read) == elements.count, "it has \(torpor_json_count(read)) elements")
            for (index, element) in elements.enumerated() {
                guard let found = torpor_json_at(read, index) else { throw Finding("element \(index) is missing") }
                try compare(found, element)
            }
        case .object(let object):
            try expect(torpor_json_count(read) == object.members.count, "it has \(torpor_json_count(read)) members")
            for (index, member) in object.members.enumerated() {
                guard let found = torpor_json_at(read, index) else { throw Finding("member \(index) is missing") }
                // A name ends at its first NUL there.
                let name = torpor_json_key(found).map { String(cString: $0) }
                let expected = member.name.utf8.prefix { $0 != 0 }
                try expect(name?.utf8.elementsEqual(expected) ?? false, "member \(index) has another name")
                try compare(found, member.value)
            }
        }
    }
}
