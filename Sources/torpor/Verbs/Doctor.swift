import ArgumentParser
import Linux
import TorporAPI
import Varlink

struct Doctor: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows what this machine offers, what it lacks and what that costs."
    )
    @OptionGroup var options: GlobalOptions

    func run() throws {
        let reply = try Manager(socket: options.socket).call(.doctor)
        guard !options.json else { return Output.document(reply["checks"] ?? []) }
        let checks = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("checks") { json throws(FieldError) in try DoctorCheck(json: json) }
        }
        var text = ""
        for check in checks {
            text += check.ok ? Terminal.coloured("ok      ", .green) : Terminal.coloured("missing ", .yellow)
            text += check.name
            if let value = check.value, !value.isEmpty { text += ": \(Terminal.harmless(value))" }
            if let message = check.message, !message.isEmpty { text += "\n        \(Terminal.harmless(message))" }
            text += "\n"
        }
        ThisProcess.write(text)
    }
}
