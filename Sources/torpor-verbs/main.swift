// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import EverydayVerbs
import Linux

// `torpor` starts this program for all verbs but the everyday ones: see EverydayVerbs.
CommandLineArguments.requireBounded()
let arguments = CommandLineArguments.parsable(Array(CommandLine.arguments.dropFirst()))
ThisProcess.exit(Outcome.status { try Torpor.parseAndRun(arguments) })
