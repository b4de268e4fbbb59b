// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

/// Scenes: apps made from a template when a user opens them.
struct Scene: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scene",
        abstract: "Opens, disconnects, discards and shows the scenes of a template.",
        discussion: """
            An app with scenes in its configuration is a template. A scene of it is an app of its own, called \
            TEMPLATE@NAME, that is made when it is opened. A disconnected scene has no process; when it comes back, \
            it is where it was. All other verbs take scenes as they take apps; the template stands for all of its \
            scenes. An app with scenes.inside shows its scenes in its own process: they are opened, disconnected and \
            discarded in the same way, and foreground and background move them.
            """,
        subcommands: [SceneOpen.self, SceneDisconnect.self, SceneDiscard.self, SceneList.self]
    )
    .examples("torpor scene open code@alice", "torpor scene list code", "torpor scene discard code@alice")
}

/// A scene's full name, `TEMPLATE@NAME`.
struct SceneArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp("The template and the scene's own name, with @ between them.", valueName: "template@name"),
        completion: .custom { words, _, _ in Completion.apps(words) }
    )
    package var scene: String

    /// The template's name and the scene's own name. Throws unless the argument has both.
    func parts() throws -> (template: String, name: String) {
        guard let at = scene.firstIndex(of: "@"), at != scene.startIndex else {
            throw Failure(
                status: .usage,
                message: "\(scene) names no scene: write the template, @ and a name, such as \(scene)@alice"
            )
        }
        return (String(scene[..<at]), String(scene[scene.index(after: at)...]))
    }
}

/// The names of existing scenes.
struct ScenesArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "Names of scenes, globs, tag:NAME, or a template for all of its scenes.",
            valueName: "scene"
        ),
        completion: .custom { words, _, _ in Completion.appsAndTags(words) }
    )
    package var scenes: [String]
}

struct SceneOpen: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "open",
        abstract: "Brings a scene to the foreground; makes it if there is none of that name.",
        discussion: """
            The scene gets its session at each launch ($TORPOR_SESSION); the first one that is given is kept. If \
            max_live scenes are running, torpord disconnects the least recently used one that is in the background or \
            suspended.
            """
    )
    .examples(
        "torpor scene open code@alice",
        "torpor scene open code@alice --background",
        "torpor scene open code@bob --session '{\"project\": \"/srv/alice\"}'"
    )
    @OptionGroup var scene: SceneArgument
    @Option(help: ArgumentHelp("The session of the scene, a JSON object of at most 4 KiB.", valueName: "json"))
    var session: String?
    @Flag(help: "Launch it into the background.")
    var background = false
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let (template, name) = try scene.parts()
        var request = OpenSceneRequest(template: template, name: name)
        if let session {
            request.session = try Self.object(session)
        }
        request.background = background
        try VerbRunner.run(request, options, wait: wait)
    }

    private static func object(_ text: String) throws -> JSON {
        let wanted = "--session wants a JSON object, such as '{\"user\": 7}'"
        do throws(JSONError) {
            let json = try JSON.parse(text)
            if json.objectValue != nil { return json }
        } catch {
            throw Failure(status: .usage, message: "\(wanted): \(error)")
        }
        throw Failure(status: .usage, message: wanted)
    }
}

struct SceneDisconnect: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "disconnect",
        abstract: "Ends scenes that are in the background or suspended, and keeps all that they have.",
        discussion: """
            The session, saved state, messages and data of the scene stay. Opening it, a connection, a timer or a \
            message brings it back.
            """
    )
    .examples("torpor scene disconnect code@alice", "torpor scene disconnect code")
    @OptionGroup var scenes: ScenesArgument
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        try VerbRunner.run(VerbRequest(verb: .disconnect, apps: scenes.scenes), options, wait: wait)
    }
}

struct SceneDiscard: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "discard",
        abstract: "Ends scenes and removes all that they have.",
        discussion: """
            This removes the session, saved state, messages, data folders, settings and logs of the scene. It cannot \
            be undone.
            """
    )
    .examples("torpor scene discard code@alice")
    @OptionGroup var scenes: ScenesArgument
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let several = scenes.scenes.first(where: { !AppWord.isName($0) || !$0.contains("@") }) {
            throw ValidationError(
                "“\(several)” can be many scenes, and discarding cannot be undone: write their names, template@name"
            )
        }
    }

    package func run() throws {
        try VerbRunner.run(VerbRequest(verb: .discard, apps: scenes.scenes), options, wait: wait)
    }
}

struct SceneList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Shows the scenes of a template, or of all templates.",
        discussion: "STATE is that of the scene's app, or unattached if it has no process."
    )
    .examples("torpor scene list", "torpor scene list code --json")
    @Argument(help: ArgumentHelp("The template; all templates if none is named.", valueName: "template"))
    var template: String?
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let reply = try Manager(options).call(.scenes(template: template))
        guard !options.json else { return Output.document(reply) }
        let (templates, scenes) = try Manager.read { () throws(FieldError) in
            let fields = try Fields(reply)
            return (
                try fields.list("templates") { json throws(FieldError) in try SceneTemplateInfo(json: json) },
                try fields.list("scenes") { json throws(FieldError) in try SceneInfo(json: json) }
            )
        }
        var text = ""
        for template in templates {
            let bound = template.maxLive.map { " of at most \($0)" } ?? ""
            let count = "\(template.sessions) \(template.sessions == 1 ? "session" : "sessions")"
            text += "\(template.name): \(count) of at most \(template.maxSessions), \(template.live) live\(bound)\n"
        }
        if templates.isEmpty, scenes.isEmpty { text = "no app of the configuration has scenes\n" }
        guard !scenes.isEmpty else { return Output.page(text) }
        let haveCgroups = scenes.contains { $0.processes != nil }
        let columns = ["SCENE", "STATE"] + (haveCgroups ? ["PROCESSES"] : []) + ["OPENED", "USED", "SESSION"]
        var table = Table(columns, whole: [0])
        for scene in scenes {
            let processes = scene.processes.map { "\($0)" + (scene.isFrozen == true ? " frozen" : "") }
            table.append(
                [
                    .init(scene.app),
                    .init(scene.state, Terminal.colour(ofState: scene.state)),
                ] + (haveCgroups ? [.init(processes ?? "-")] : []) + [
                    .init(Times.brief(scene.openedAt)),
                    .init(Self.used(scene)),
                    .init(scene.session == .null ? "-" : Terminal.harmless(scene.session.description)),
                ]
            )
        }
        Output.page(text + "\n" + table.text)
    }

    private static func used(_ scene: SceneInfo) -> String {
        let end = scene.discardedAt.map { ", expires \(Times.brief($0))" } ?? ""
        let isNow = scene.usedAt >= Clock.realtimeMicroseconds() - 1_000_000
        let time = isNow ? "now" : Times.brief(scene.usedAt)
        return time + (scene.lacksTemplate ? ", has no template" : "") + end
    }
}
