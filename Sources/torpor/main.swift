// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI

// `torpor`: runs the verbs that shells, scripts and probes call often. For all others it becomes torpor-verbs, which has
// the argument parser, the help and the libraries that only some verbs need: the loader takes longer for these than an
// everyday verb takes for its work.
CommandLineArguments.requireBounded()
let arguments = Array(CommandLine.arguments.dropFirst())
if arguments == ["--version"] { ThisProcess.exit(Outcome.status { Output.write("torpor \(TorporVersion.text)\n") }) }
if let plain = PlainArguments(arguments) { ThisProcess.exit(Outcome.status { try plain.run() }) }
ThisProcess.exit(Outcome.status { try OtherVerbs.run(arguments) })
