// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Linux

sim_prepare(CommandLine.unsafeArgv)

let usage = """
    Usage: torpor-simulate [--seed N] [--seeds COUNT] [--steps COUNT] [--jobs N] [--first N] [--check-repeats] [--trace]

      --seed N       run this seed alone
      --seeds COUNT  run so many seeds (default 100)
      --first N      begin with this seed (default 1)
      --steps COUNT  steps of each (default 1000)
      --jobs N       seeds at a time (default 2)
      --check-repeats  run each seed twice, and compare the traces
      --trace        with --seed: print all that happened
    """

var options = Options()
var arguments = CommandLine.arguments.dropFirst()

@MainActor func number(_ option: String) -> UInt64 {
    guard let text = arguments.popFirst(), let value = UInt64(text) else {
        ThisProcess.complain("\(option) needs a number")
        ThisProcess.exit(2)
    }
    return value
}

while let argument = arguments.popFirst() {
    switch argument {
    case "--seed":
        options.first = number(argument)
        options.count = 1
        options.jobs = 1
    case "--seeds": options.count = number(argument)
    case "--first": options.first = number(argument)
    case "--steps": options.steps = Int(number(argument))
    case "--jobs": options.jobs = Int(number(argument))
    case "--check-repeats": options.checkRepeats = true
    case "--trace": options.trace = true
    default:
        ThisProcess.complain(usage)
        ThisProcess.exit(2)
    }
}
ThisProcess.exit(Seeds(options).run())
