import ArgumentParser
import TorporAPI

struct Suspend: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend",
        abstract: "Stops the processes of apps and keeps them in memory."
    )
    .examples(
        "torpor suspend web",
        "torpor suspend web --force"
    )
    @OptionGroup var apps: AppsArgument
    @Flag(help: "Although something holds the app.") var force = false
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    func run() throws {
        var request = VerbRequest(verb: .suspend, apps: apps.apps)
        request.force = force
        try VerbRunner.run(request, options, wait: wait)
    }
}
