// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import TorporAPI
import Varlink

struct AppPermissionsVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "permissions",
        abstract: "Shows what the app may do in its sandbox.",
        discussion: "The state is allow, deny, or ask: withheld, since no person has answered."
    )
    .examples("torpor app permissions")
    @OptionGroup var output: OutputOptions

    package func run() throws {
        let reply = try AppSide.call(.permissions)
        guard !output.json else { return Output.document(reply["permissions"] ?? []) }
        let all = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("permissions") { json throws(FieldError) in try PermissionStanding(json: json) }
        }
        guard !all.isEmpty else { return Output.write("the app asks for no permissions\n") }
        var table = Table(["PERMISSION", "STATE"], whole: [0])
        for one in all { table.append([.init(one.name), .init(one.state)]) }
        Output.page(table.text)
    }
}

struct AppRequestPermission: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "request-permission",
        abstract: "Has people asked for a permission of the app.",
        discussion: """
            Prints allow, deny or ask. Exit status 1: it is not allowed now. People are asked for each permission once, \
            and at most once an hour for each app; the command does not wait for their answer. If the answer changes the \
            app's sandbox, the app is ended and launched again.
            """
    )
    .examples("torpor app request-permission camera")
    @Argument(help: ArgumentHelp("The permission, as the configuration declares it.", valueName: "name"))
    var name: String
    @OptionGroup var output: OutputOptions

    package func run() throws {
        let reply = try AppSide.call(.requestPermission(name: name))
        let standing = try Manager.read { () throws(FieldError) in try PermissionReply(json: reply) }
        if output.json { Output.document(standing.json) } else { Output.write(standing.state + "\n") }
        guard standing.state == "allow" else {
            throw Failure(status: .failed, message: output.json ? nil : Self.sentence(name, standing))
        }
    }

    private static func sentence(_ name: String, _ standing: PermissionReply) -> String {
        if standing.state == "deny" { return "\(name) is denied" }
        if standing.isAskedNow { return "people are asked for \(name) now: try again later" }
        let next = standing.nextAt.map { "; the next question may be at " + Times.timestamp($0) } ?? ""
        return "\(name) is not answered: \(standing.message ?? "no person has answered")\(next)"
    }
}
