import Linux

// `list` is what prompts and loops call: it does without the argument parser where it can.
let arguments = CommandLineArguments.reordered(Array(CommandLine.arguments.dropFirst()))
if let list = FastList(arguments: arguments) {
    ThisProcess.exit(Outcome.status { try list.run() })
}
ThisProcess.exit(Outcome.status { try Torpor.parseAndRun(arguments) })
