// SPDX-License-Identifier: Apache-2.0

import CFuzzTargets
import Glibc
import KeeperProtocol
import WireText

/// A launch: as the keeper may get it, and texts with a NUL between that torpord makes one of, which the keeper reads: app,
/// executable, directory, file of the input, arguments up to an empty one, environment.
enum KeeperLaunches: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        for descriptors: UInt32 in [0, 3] {
            var plan = cfuzz_plan()
            guard cfuzz_keeper_plan(bytes, bytes.count, descriptors, &plan) == 0 else { continue }
            try expect(strlen(plan.app) > 0 && strlen(plan.app) < 64, "an app has no name")
            try expect(strlen(plan.executable) > 0 && plan.arguments[0] != nil, "there is nothing to execute")
            try expect(plan.filter_count <= 256, "a filter longer than its room")
            try expect(!plan.has_ruleset || plan.filter_count > 0, "a ruleset without a sandbox")
            _ = (texts(plan.arguments), texts(plan.environment))
        }
        try roundTrip(bytes)
    }

    private static func roundTrip(_ bytes: [UInt8]) throws(Finding) {
        let texts = bytes.split(separator: 0, omittingEmptySubsequences: false).map {
            String(wire: $0)
        }
        guard texts.count > 4 else { return }
        var request = LaunchRequest()
        request.app = texts[0]
        request.executable = texts[1]
        request.directory = texts[2].isEmpty ? nil : texts[2]
        request.inputFile = texts[3].isEmpty ? nil : texts[3]
        request.arguments = texts[4...].prefix { !$0.isEmpty }.map { $0 }
        request.environment = Array(texts[4...].dropFirst(request.arguments.count + 1))
        request.limits = [(resource: 7, soft: UInt64(texts.count), hard: 4_096)]
        request.user = (uid: 33, gid: 33, groups: [33, 4])
        request.standard = (-1, 8, 9)
        request.passed = [10, 11]
        request.setListenPid = bytes.count % 2 == 0
        if bytes.count % 3 == 0 {
            let steps = bytes.prefix(KeeperProtocol.filterLimit).map {
                (code: UInt16($0), ifTrue: $0, ifFalse: 0 as UInt8, value: UInt32($0))
            }
            request.sandbox = LaunchRequest.Sandbox(ruleset: bytes.count % 2 == 0 ? 12 : nil, filter: steps)
            request.sandbox?.hasOwnIPC = bytes.count % 5 == 0
            request.sandbox?.logsDenials = bytes.count % 7 == 0
        }
        guard let message = try? request.encoded(id: 1) else { return }
        var plan = cfuzz_plan()
        let error = cfuzz_keeper_plan(message, message.count, UInt32(request.descriptors.count), &plan)
        // What only the keeper refuses.
        // A mark behind the slash is a part of the same character, but not of the same byte.
        if request.executable.isEmpty || request.inputFile.map({ $0.utf8.first != UInt8(ascii: "/") }) ?? false {
            try expect(error == EINVAL, "the keeper takes a launch of nothing: \(error)")
            return
        }
        try expect(error == 0, "the keeper refuses what torpord sends: \(error)")
        try expect(Int(plan.filter_count) == request.sandbox?.filter.count ?? 0, "another filter")
        try expect(plan.has_ruleset == (request.sandbox?.ruleset != nil), "another ruleset")
        try expect(isSame(plan.app, request.app), "another app")
        try expect(isSame(plan.executable, request.executable), "another program")
        try expect(isSame(plan.directory, request.directory ?? ""), "another directory")
        if let file = request.inputFile { try expect(isSame(plan.input_file, file), "another input") }
        try expect(Self.texts(plan.arguments) == request.arguments.map { Array($0.utf8) }, "other arguments")
        guard !request.setListenPid else { return }
        try expect(Self.texts(plan.environment) == request.environment.map { Array($0.utf8) }, "another environment")
    }

    private static func isSame(_ one: UnsafePointer<CChar>?, _ other: String) -> Bool {
        one.map { strcmp($0, other) == 0 } ?? false
    }

    private static func texts(_ list: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> [[UInt8]] {
        var texts: [[UInt8]] = []
        var next = list
        while let place = next, let text = place.pointee {
            texts.append(Array(UnsafeRawBufferPointer(start: text, count: strlen(text))))
            next = place + 1
        }
        return texts
    }
}
