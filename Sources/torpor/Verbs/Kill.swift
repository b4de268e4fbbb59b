import ArgumentParser
import TorporAPI

struct Kill: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "kill",
        abstract: "Forces apps to quit, without telling them; no event launches them again."
    )
    .examples(
        "torpor kill web"
    )
    @OptionGroup var apps: AppsArgument
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    func run() throws {
        let request = VerbRequest(verb: .kill, apps: apps.apps)
        try VerbRunner.run(request, options, wait: wait)
    }
}
