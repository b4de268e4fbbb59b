// SPDX-License-Identifier: Apache-2.0

import Foundation

// Counts instructions of Torpor's inner parts: that shows regressions even on a noisy machine.
//   micro [--root FOLDER] [--baseline FILE] [--write] [--check] [NAME...]
//   micro run NAME COUNT       runs a part under callgrind

var arguments = Array(CommandLine.arguments.dropFirst())

if arguments.first == "run", arguments.count == 3, let part = Part.named(arguments[1]), let count = Int(arguments[2]) {
    do {
        try part.make()(count)
        exit(0)
    } catch {
        FileHandle.standardError.write(Data("micro: \(part.name): \(error)\n".utf8))
        exit(1)
    }
}

var root = ".build/release"
var baselineFile: String?
var isWriting = false
var isChecking = false
var names: [String] = []
while !arguments.isEmpty {
    let argument = arguments.removeFirst()
    switch argument {
    case "--root" where !arguments.isEmpty: root = arguments.removeFirst()
    case "--baseline" where !arguments.isEmpty: baselineFile = arguments.removeFirst()
    case "--write": isWriting = true
    case "--check": isChecking = true
    case let name where !name.hasPrefix("-"): names.append(name)
    default:
        FileHandle.standardError.write(
            Data("usage: micro [--root FOLDER] [--baseline FILE] [--write] [--check] [NAME...]\n".utf8)
        )
        exit(2)
    }
}

let report = MicroReport(baseline: baselineFile.map(Baseline.init(file:)))
for part in Part.all where names.isEmpty || names.contains(part.name) {
    report.add(part.name, part.what) { try Callgrind.instructions(of: part) }
}
if names.isEmpty || !WholeLaunch.names.isDisjoint(with: names) { WholeLaunch.measure(root: root, names, into: report) }
Scratch.remove()
report.finish()
if isWriting, let baselineFile { Baseline.write(report.results, to: baselineFile) }
exit(isChecking && report.hasRegressed ? 1 : 0)
