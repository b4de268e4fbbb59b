// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The command line of `bench`.
struct Command {
    var isQuick = false
    var only: [String] = []
    var peers: [String] = []
    var json: String?
    var svg: String?
    var markdown: String?
    var binaries: String?
    var before: String?
    var apps: [Int] = []
    var swapFile = 0

    static let usage = """
        usage: bench [--quick] [--only MEASUREMENT]... [--peers PEER,...] [--json FILE] [--svg FILE] [--markdown FILE]
                     [--apps COUNT,...] [--swap-file MIB] [--bin DIRECTORY]
                     [--before DIRECTORY] [--list]
        --apps: how many apps `scale` launches, once each, instead of its usual steps; how many `density` tries.
        --swap-file: `density` has a swap file of this size beside its zram.
        --before: the programs of an earlier build, measured in the same turns (as the peer torpor-before).
        Measures Torpor and its peers side by side. Tables go to standard output, progress to standard error.
        """

    /// Runs the command and returns the exit status.
    static func main(_ arguments: [String]) -> Int32 {
        do {
            guard let command = try Command(arguments) else { return 0 }
            return try command.run()
        } catch is Interrupted {
            say("interrupted: everything has been ended and removed")
            return 130
        } catch {
            say("bench: \(error)")
            return 1
        }
    }

    /// Nil if there is nothing left to do.
    init?(_ arguments: [String]) throws {
        var rest = arguments[...]
        func value(_ option: String) throws -> String {
            guard let value = rest.popFirst() else { throw Trouble("\(option) needs a value\n\(Self.usage)") }
            return value
        }
        while let argument = rest.popFirst() {
            switch argument {
            case "--quick": isQuick = true
            case "--only": only += try value(argument).split(separator: ",").map(String.init)
            case "--peers": peers += try value(argument).split(separator: ",").map(String.init)
            case "--json": json = try value(argument)
            case "--svg": svg = try value(argument)
            case "--markdown": markdown = try value(argument)
            case "--bin": binaries = try value(argument)
            case "--before": before = try value(argument)
            case "--apps":
                for word in try value(argument).split(separator: ",") {
                    guard let count = Int(word), (0...ReportPage.slots).contains(count) else {
                        throw Trouble("--apps takes numbers from 0 to \(ReportPage.slots), not \(word)")
                    }
                    apps.append(count)
                }
            case "--swap-file":
                let word = try value(argument)
                guard let size = Int(word), (1...1 << 20).contains(size) else {
                    throw Trouble("--swap-file takes a size in MiB, not \(word)")
                }
                swapFile = size
            case "--list":
                print(Registry.measurements.map(\.name).joined(separator: "\n"))
                return nil
            case "--help", "-h":
                print(Self.usage)
                return nil
            default: throw Trouble("\(argument) is no option\n\(Self.usage)")
            }
        }
        for name in only where !Registry.measurements.contains(where: { $0.name == name }) {
            throw Trouble("there is no measurement \(name): --list shows them")
        }
    }

    private func run() throws -> Int32 {
        Interruption.watch()
        let bench = try Bench(
            binaries: binaries,
            before: before,
            quick: isQuick,
            apps: apps,
            swapFile: swapFile,
            chosen: peers
        )
        defer { bench.removeAll() }
        let all = Registry.peers(bench)
        var names = all.map(\.name)
        names += Podman.all.map(\.name)
        names += DensityPeer.all(bench).map(\.name).filter { !names.contains($0) }
        for name in peers where !names.contains(name) {
            throw Trouble("there is no peer \(name): \(names.joined(separator: ", "))")
        }
        // A quick run measures only one form of Torpor, unless told otherwise.
        let usual = all.filter { !isQuick || $0.name != "torpor-nocg" }
        let measurements = Registry.measurements.filter { only.isEmpty ? !$0.isOnlyAsked : only.contains($0.name) }
        // Measurements that run only on request bring their own peers.
        let isOrdinary = measurements.contains { !$0.isOnlyAsked }
        let run = Run(bench, !isOrdinary ? [] : peers.isEmpty ? usual : all.filter { peers.contains($0.name) })
        defer { run.end() }
        for peer in run.peers { if let missing = peer.missing { run.note(peer.name, "not measured: \(missing)") } }
        let began = now()
        for (index, measurement) in measurements.enumerated() {
            try run.measure(measurement)
            // After each measurement, so that an interrupted run loses nothing.
            try write(Results(run, Array(measurements[...index]), seconds: now() - began))
        }
        say(String(format: "measured in %.0f s", now() - began))
        print(TextTable.text(Results(run, measurements, seconds: now() - began)))
        return 0
    }

    private func write(_ results: Results) throws {
        if let json { try results.json().write(to: URL(fileURLWithPath: json)) }
        if let markdown { try Markdown.text(results).write(toFile: markdown, atomically: true, encoding: .utf8) }
        if let svg { try Chart.svg(results).write(toFile: svg, atomically: true, encoding: .utf8) }
    }
}
