import ArgumentParser
struct Init: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "init", abstract: "x")
    func run() throws {}
}
