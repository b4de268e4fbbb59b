// SPDX-License-Identifier: Apache-2.0

import WireText

/// Text from bytes.
enum WireTexts: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        let text = String(wire: bytes)
        try expect(WireText.isBounded(text), "a run is too long")
        try expect(String(wire: text.utf8).utf8.elementsEqual(text.utf8), "it is another text the second time")
        if let valid = String(validWire: bytes) {
            try expect(valid.utf8.elementsEqual(bytes), "it is not what came")
            try expect(text.utf8.elementsEqual(bytes), "what is valid was changed")
        }
        let terminated = (bytes + [0]).withUnsafeBufferPointer { buffer in
            buffer.baseAddress.map { String(terminatedWire: $0) } ?? ""
        }
        try expect(terminated.utf8.elementsEqual(String(wire: bytes.prefix { $0 != 0 }).utf8), "its end is elsewhere")
        // What the bound is for: these take time quadratic in a run.
        try expect(text == text + "" && Set([text]).contains(text), "it is not itself")
        _ = (text.count, text.split(separator: " ").count, text.lowercased().utf8.count, WireText(text).hashValue)
    }
}
