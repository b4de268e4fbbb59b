import ArgumentParser
import TorporAPI

struct Foreground: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "foreground",
        abstract: "Brings apps to the foreground."
    )
    @OptionGroup var apps: AppsArgument
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    func run() throws {
        let request = VerbRequest(verb: .foreground, apps: apps.apps)
        try VerbRunner.run(request, options, wait: wait)
    }
}
