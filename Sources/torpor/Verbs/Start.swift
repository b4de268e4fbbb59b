import ArgumentParser
import TorporAPI

struct Start: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "start",
        abstract: "Launches apps into the foreground."
    )
    @OptionGroup var apps: AppsArgument
    @Flag(help: "Launch into the background.") var background = false
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    func run() throws {
        var request = VerbRequest(verb: .start, apps: apps.apps)
        request.background = background
        try VerbRunner.run(request, options, wait: wait)
    }
}
