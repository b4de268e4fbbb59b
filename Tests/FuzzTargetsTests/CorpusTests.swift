// SPDX-License-Identifier: Apache-2.0

import Foundation
import FuzzTargets
import Linux
import Testing

/// The inputs of Fuzz/: seeds, and those that failed once. `make fuzz` looks for more of the latter.
@Suite("Parsers under their fuzzers' oracles")
struct CorpusTests {
    private static let folder = #filePath.split(separator: "/").dropLast(3).reduce("") { $0 + "/" + $1 } + "/Fuzz"

    private static func files(_ kind: String, _ target: FuzzTarget) -> [String] {
        let folder = "\(folder)/\(kind)/\(target)"
        return ((try? File.list(folder)) ?? []).sorted().map { folder + "/" + $0 }
    }

    @Test("what holds of a parser holds for its seeds", arguments: FuzzTarget.allCases)
    func seeds(_ target: FuzzTarget) throws {
        let seeds = Self.files("Corpora", target)
        #expect(!seeds.isEmpty, "put some inputs into Fuzz/Corpora/\(target): a fuzzer makes others of them")
        for path in seeds { run(target, try File.read(path, limit: 1 << 20), path, isGrown: false) }
    }

    @Test("what failed once fails no longer, nor does what is made longer of it", arguments: FuzzTarget.allCases)
    func regressions(_ target: FuzzTarget) throws {
        for path in Self.files("Regressions", target) {
            run(target, try File.read(path, limit: 1 << 20), path, isGrown: true)
        }
    }

    /// The same ones each time: a search by libFuzzer is `make fuzz`. `TORPOR_MUTATIONS` says how many there are,
    /// `TORPOR_MUTATION` which one alone; with `TORPOR_MUTATION_TRACE` each is named first, since a trap says nothing.
    @Test("what holds of a parser holds for what is made of its inputs at random", arguments: FuzzTarget.allCases)
    func mutations(_ target: FuzzTarget) throws {
        let environment = ProcessInfo.processInfo.environment
        let count = environment["TORPOR_MUTATIONS"].flatMap { UInt64($0) } ?? 200
        let only = environment["TORPOR_MUTATION"].flatMap { UInt64($0) }
        let paths = Self.files("Corpora", target) + Self.files("Regressions", target)
        let inputs = try paths.map { path throws(Errno) in try File.read(path, limit: 1 << 20) }
        for number in only.map({ $0...$0 }) ?? 1...max(1, count) {
            var mutations = Mutations(number)
            let bytes = mutations.one(of: inputs)
            if environment["TORPOR_MUTATION_TRACE"] != nil { print("\(target) \(number)") }
            do throws(Finding) {
                try target.run(bytes, isGrown: false)
            } catch {
                Issue.record("\(error)\nTo see it again: TORPOR_MUTATION=\(number) make test FILTER=mutations")
                return
            }
        }
    }

    @Test("every folder of inputs is a target's", arguments: ["Corpora", "Regressions"])
    func folders(_ kind: String) throws {
        let known = Set(FuzzTarget.allCases.map(\.rawValue))
        for name in (try? File.list("\(Self.folder)/\(kind)")) ?? [] {
            #expect(known.contains(name), "Fuzz/\(kind)/\(name) is no target's: rename it as in FuzzTarget.swift")
        }
    }

    private func run(_ target: FuzzTarget, _ bytes: [UInt8], _ path: String, isGrown: Bool) {
        do throws(Finding) {
            try target.run(bytes, isGrown: isGrown)
        } catch {
            Issue.record("\(error)\nTo see it again: Fuzz/.build/release/fuzz \(target) \(path)")
        }
    }
}
