// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import SystemPackage
import TorporAPI
import Varlink
import WireText

struct SettingsVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "settings",
        abstract: "Shows or changes the settings of an app.",
        discussion: """
            Without KEY=VALUE, shows each setting, its value, its default and when it was changed; of a secret only \
            whether it is set. Several changes are made together or not at all. When the command returns, they are on \
            the disk, and in the app's settings.json.
            """
    )
    .examples(
        "torpor settings web",
        "torpor settings web port=8001 theme=dark",
        "torpor settings web --unset theme",
        "torpor settings web --file web.settings",
        "printf %s \"$KEY\" | torpor settings web --stdin api_key"
    )

    @Argument(
        help: ArgumentHelp("The app's name.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.apps(words) }
    )
    var app: String
    @Argument(help: ArgumentHelp("Set the setting to the value.", valueName: "key=value"))
    var changes: [String] = []
    @Option(help: ArgumentHelp("Reset the setting to its default.", valueName: "key"))
    var unset: [String] = []
    @Option(
        help: ArgumentHelp("Read changes from a file: lines of KEY=VALUE, or a JSON object.", valueName: "file"),
        completion: .file()
    )
    var file: String?
    @Option(help: ArgumentHelp("Read the value of the setting from standard input.", valueName: "key"))
    var stdin: String?
    @OptionGroup var times: TimeOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if !AppWord.isName(app) {
            throw ValidationError("“\(app)” can be many apps, and this verb takes one: write its name")
        }
        for change in changes where Self.split(change) == nil {
            throw ValidationError("“\(Terminal.harmless(change))” is not KEY=VALUE: write, for example, port=8001")
        }
    }

    package func run() throws {
        var request = SetSettingsRequest(app: app)
        if let file { request.values += try Self.read(file) }
        request.values += changes.compactMap(Self.split)
        if let stdin { request.values.append(.init(stdin, try Self.readInput(of: stdin))) }
        request.unset = unset
        var named: Set<[UInt8]> = []
        for name in request.values.map(\.key) + unset where !named.insert(Array(name.utf8)).inserted {
            let message = "\(Terminal.harmless(name)) is named twice: name each setting once"
            throw Failure(status: .usage, message: message)
        }
        let manager = try Manager(options)
        guard !request.values.isEmpty || !unset.isEmpty else {
            if file != nil { throw Failure(status: .failed, message: "the file has no changes in it") }
            return try show(try manager.call(.settings(app: app)))
        }
        let reply = try manager.call(.setSettings(request))
        if options.json { return Output.document(reply) }
        let result = try Manager.read { () throws(FieldError) in try SetSettingsReply(json: reply) }
        if result.changed.isEmpty { return Output.write("nothing changed: the values are the same\n") }
        let names = result.changed.map { Terminal.harmless($0) }.joined(separator: ", ")
        Output.write("\(names) changed" + (result.message.map { "; " + Terminal.harmless($0) } ?? "") + "\n")
    }

    private static func split(_ text: String) -> SetSettingsRequest.Value? {
        guard let sign = text.utf8.firstIndex(of: UInt8(ascii: "=")), sign != text.startIndex else { return nil }
        return .init(String(text[..<sign]), String(text[text.utf8.index(after: sign)...]))
    }

    /// The maximum number of bytes that are read from a file. It is enough for 200 settings of 4 KiB.
    private static let mostBytes = 2 << 20

    private static func read(_ path: String) throws -> [SetSettingsRequest.Value] {
        let bytes: [UInt8]
        do throws(Errno) {
            bytes = try File.read(path, limit: mostBytes)
        } catch {
            throw Failure(status: .failed, message: "\(path) cannot be read: \(error)")
        }
        let text = try Self.text(bytes, of: path)
        if text.utf8.first(where: { ![0x20, 0x09, 0x0a, 0x0d].contains($0) }) == UInt8(ascii: "{") {
            let json: JSON
            do throws(JSONError) {
                json = try JSON.parse(text)
            } catch {
                throw Failure(status: .failed, message: "\(path) is \(error)")
            }
            guard let object = json.objectValue else {
                throw Failure(status: .failed, message: "\(path) is not a JSON object")
            }
            return try object.members.map { member in
                guard let text = SetSettingsRequest.text(member.value) else {
                    throw Failure(
                        status: .failed,
                        message: "\(path): \(member.name) must be a string, a number, true or false"
                    )
                }
                return .init(member.name, text)
            }
        }
        var values: [SetSettingsRequest.Value] = []
        // Split by bytes, because CR LF is a single Character in Swift.
        for (index, bytes) in text.utf8.split(separator: 0x0a, omittingEmptySubsequences: false).enumerated() {
            var line = Array(bytes)
            if line.last == 0x0d { line.removeLast() }
            guard line.contains(where: { $0 != 0x20 && $0 != 0x09 }), line.first != UInt8(ascii: "#") else { continue }
            guard let value = split(String(wire: line)) else {
                throw Failure(status: .failed, message: "\(path):\(index + 1): write KEY=VALUE, or # for a comment")
            }
            values.append(value)
        }
        return values
    }

    /// Reads the whole input, without its final line break.
    private static func readInput(of name: String) throws -> String {
        var bytes: [UInt8]
        do throws(Errno) {
            bytes = try File.read(descriptor: 0, limit: 64 << 10)
        } catch {
            throw Failure(status: .failed, message: "standard input cannot be read: \(error)")
        }
        if bytes.last == 0x0a { bytes.removeLast() }
        guard !bytes.isEmpty else {
            let message = "standard input is empty: ‘torpor settings APP --unset \(name)’ removes a value"
            throw Failure(status: .failed, message: message)
        }
        return try text(bytes, of: "standard input")
    }

    /// Decodes UTF-8, and throws for other bytes: a value must be stored unchanged or not at all.
    private static func text(_ bytes: [UInt8], of source: String) throws -> String {
        guard let text = String(validWire: bytes) else {
            throw Failure(status: .failed, message: "\(source) is not UTF-8 text: nothing is changed")
        }
        return text
    }

    private func show(_ reply: JSON) throws {
        if options.json { return Output.document(reply["settings"] ?? []) }
        let settings = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("settings") { json throws(FieldError) in try SettingInfo(json: json) }
        }
        guard !settings.isEmpty else {
            return Output.write("\(app) has no settings: declare them under [apps.\(app).settings]\n")
        }
        var table = Table(["KEY", "VALUE", "DEFAULT", "CHANGED"], whole: [0, 3])
        for setting in settings {
            let value =
                setting.type == "secret"
                ? (setting.isSet ? "set" : "not set") : setting.text.map(Self.short) ?? "not set"
            table.append([
                .init(setting.key), .init(value, setting.trouble == nil ? nil : .red),
                .init(setting.defaultText.map(Self.short) ?? "-"), .init(setting.changedAt.map(Times.brief) ?? "-"),
            ])
        }
        Output.page(table.text)
        for setting in settings {
            guard let trouble = setting.trouble else { continue }
            Output.write("\(setting.key) is treated as unset: its value \(Terminal.harmless(trouble))\n")
        }
    }

    private static func short(_ text: String) -> String {
        let line = text.replacing("\n", with: "\\n").replacing("\t", with: "\\t")
        return line.isEmpty ? "\"\"" : line.count <= 60 ? line : line.prefix(59) + "…"
    }
}
