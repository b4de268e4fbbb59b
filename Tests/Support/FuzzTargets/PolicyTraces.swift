// SPDX-License-Identifier: Apache-2.0

import Linux
import Policies
import TorporAPI
import Varlink

/// A recording of policies, line by line, and what a view shows of it: what `torpor policy simulate` reads.
enum PolicyTraces: FuzzedParser {
    /// In a debug build the empty records of a view with all its places take a while.
    static let nanosecondsPerByte = 20_000

    static func run(_ bytes: [UInt8]) throws(Finding) {
        guard let view = try? PolicyView() else { throw Finding("there is no memory for a view") }
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            guard let read = parse(line) else { continue }
            let written = read.json.serialised()
            guard let again = parse(written[...]) else { throw Finding("what was written cannot be read") }
            // Tags without a name mean nothing, and are not written.
            try expect(again.json.serialised() == written, "it is another line when it is written and read again")
            if case .round(let round) = read { try show(round, in: view) }
        }
    }

    private static func parse(_ bytes: ArraySlice<UInt8>) -> PolicyTraceLine? {
        (try? JSON.parse(bytes)).flatMap { try? PolicyTraceLine(json: $0) }
    }

    private static func show(_ round: PolicyTraceRound, in view: PolicyView) throws(Finding) {
        for app in round.apps {
            let place = Int(app.place)
            if let name = app.name, view.put(place, name: name, tags: app.tags) {
                try expect(view.isPresent(place), "place \(place) is empty after an app was put there")
                try expect(view.tags(place).count == app.tags.count, "tags of place \(place) are lost")
            }
            guard view.isPresent(place) else { continue }
            for member in app.fields.members {
                guard let field = PolicyField.byNameOfApps[member.name] else { continue }
                _ = view.put(numbers(member.value), as: field, intoApp: place)
            }
            try expect(view.name(place).utf8.count <= app.name?.utf8.count ?? Int.max, "the name has grown")
        }
        for member in round.system.members {
            guard let field = PolicyField.byNameOfSystem[member.name] else { continue }
            _ = view.putSystem(numbers(member.value), as: field)
        }
    }

    /// Those of an array, or the one; what is no number is none.
    private static func numbers(_ value: JSON) -> [Int64?] { value.arrayValue?.map(\.intValue) ?? [value.intValue] }
}
