// SPDX-License-Identifier: Apache-2.0

import TorporAPI
import Varlink

/// Calls of torpord's interfaces with their parameters: one JSON text, or several with a NUL between.
enum VarlinkCalls: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        for text in bytes.split(separator: 0) {
            guard let json = try? JSON.parse(text), let call = try? VarlinkCall(json: json) else { continue }
            if let request = try? ManagerRequest(call: call) {
                let again = try? ManagerRequest(call: request.call)
                try expect(again == request, "\(call.method) is another request when it is written and read again")
            }
            if let request = try? AppRequest(call: call) {
                let again = try? AppRequest(call: request.call)
                try expect(again == request, "\(call.method) is another request when it is written and read again")
            }
        }
    }
}
