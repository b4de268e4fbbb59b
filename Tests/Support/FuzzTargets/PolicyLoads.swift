// SPDX-License-Identifier: Apache-2.0

import CFuzzTargets
import Policies
import WireText

/// What a policy's process is to load: as it may get it, and texts with a NUL between that torpord makes one of, which the
/// process reads: the path, then keys and values of options.
enum PolicyLoads: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        var load = cfuzz_load()
        if cfuzz_policy_load(bytes, bytes.count, &load) {
            try expect(load.path[0] == 0x2f, "a path that does not begin with /")
            for index in 0..<load.option_count { _ = option(index) }
        }
        let texts = bytes.split(separator: 0, omittingEmptySubsequences: false).map {
            String(wire: $0)
        }
        guard texts.count > 1 else { return }
        var options: [PolicyOption] = []
        for index in stride(from: 1, to: texts.count - 1, by: 2) {
            options.append(PolicyOption(key: texts[index], value: value(texts[index + 1])))
        }
        let message = HostMessages.Load(
            path: "/" + texts[0],
            options: options,
            addressSpace: 1 << 30,
            viewSize: 4_096,
            adviceLimit: 64
        )
        guard let encoded = try? message.encoded() else { return }
        try expect(cfuzz_policy_load(encoded, encoded.count, &load), "the process refuses what torpord sends")
        try expect(String(cString: load.path) == message.path, "another path")
        try expect(Int(load.option_count) == options.count, "\(load.option_count) options of \(options.count)")
        try expect(load.address_space == 1 << 30 && load.view_size == 4_096 && load.advice_limit == 64, "other limits")
        for (index, wanted) in options.enumerated() {
            guard let found = option(UInt32(index)) else { throw Finding("option \(index) is missing") }
            let isSame = found.key == wanted.key && found.text == wanted.text && found.type == wanted.type
            try expect(isSame && found.integer == wanted.integer, "option \(index) is another one")
        }
    }

    private static func value(_ text: String) -> PolicyOption.Value {
        if let integer = Int64(text) { return .integer(integer) }
        return text == "true" ? .boolean(true) : .string(text)
    }

    private static func option(_ index: UInt32) -> (key: String, text: String, type: UInt32, integer: Int64)? {
        var key: UnsafePointer<CChar>?
        var text: UnsafePointer<CChar>?
        var type: UInt32 = 0
        var integer: Int64 = 0
        guard cfuzz_policy_option(index, &key, &text, &type, &integer), let key, let text else { return nil }
        return (String(cString: key), String(cString: text), type, integer)
    }
}
