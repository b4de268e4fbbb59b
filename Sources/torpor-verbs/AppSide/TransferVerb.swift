// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import TransferProtocol
import Varlink
import WireText

/// File transfers, for an app's scripts.
struct TransferVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transfer",
        abstract: "Downloads and uploads files for an app's scripts, even while the app sleeps.",
        discussion: """
            The supervisor moves the file, retries when the network fails, and wakes or launches the app when all \
            transfers of a session are over. These verbs are for the app's own processes; ‘torpor transfers’ is for \
            operators.
            """,
        subcommands: [
            TransferGet.self, TransferPut.self, TransferList.self, TransferCancel.self, TransferLogin.self,
            TransferWait.self,
        ]
    )
    .examples(
        "torpor app transfer get https://files.example.org/12.mp3 new/12.mp3",
        "torpor app transfer put backup.tar https://dav.example.org/a.tar",
        "torpor app transfer wait --session episodes"
    )
}

/// The options that downloads and uploads share.
struct TransferOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The session, a name for transfers that belong together.", valueName: "name"))
    var session = "default"
    @Option(
        name: [.customShort("H"), .long],
        help: ArgumentHelp("Send this header field.", valueName: "name: value")
    )
    var header: [String] = []
    @Flag(help: "Wait until memory, battery, load and time of day are favourable.")
    var discretionary = false
    @Flag(help: "Do not wake or launch the app when the session is over.")
    var noEvents = false
    @Option(help: ArgumentHelp("Run before the app's transfers with a lower priority.", valueName: "number"))
    var priority: Int64 = 0
    @Flag(help: "Wait until the transfer is over; exit with 1 if it failed.")
    var wait = false

    func validate() throws {
        for field in header where Self.split(field) == nil {
            throw ValidationError("“\(Terminal.harmless(field))” is no header field: write “Name: value”")
        }
    }

    static func split(_ field: String) -> (name: String, value: String)? {
        guard let colon = field.firstIndex(of: ":"), colon > field.startIndex else { return nil }
        let value = field[field.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        return (String(field[..<colon]), String(value))
    }

    /// Starts the transfer and prints its number; with `--wait`, waits and prints its result.
    func start(_ request: StartTransferRequest, _ output: OutputOptions) throws {
        var request = request
        request.session = session
        request.headers = header.compactMap(Self.split).map {
            StartTransferRequest.Header(name: $0.name, value: $0.value)
        }
        request.isDiscretionary = discretionary
        request.events = !noEvents
        request.priority = priority
        request.token = .random()
        let reply = try AppSide.call(.startTransfer(request))
        guard wait, let id = reply["id"]?.intValue else {
            if output.json { return Output.document(reply) }
            return Output.write("\(reply["id"]?.intValue ?? 0)\n")
        }
        try TransferWait.wait(session: session, ids: [id], output)
    }
}

struct TransferGet: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Downloads a file in the background; prints the transfer's number."
    )
    .examples(
        "torpor app transfer get https://files.example.org/a.zip",
        "torpor app transfer get --session a https://h/a b/a"
    )

    @Argument(help: "The URL to download, http or https.")
    var url: String
    @Argument(
        help:
            "The file to write, in the app's state directory or a data folder; else named by the end of the URL's path."
    )
    var file: String?
    @Option(help: ArgumentHelp("The SHA-256 checksum that the file must have.", valueName: "hex"))
    var sha256: String?
    @OptionGroup var transfer: TransferOptions
    @OptionGroup var output: OutputOptions

    package func run() throws {
        guard WebAddress(url) != nil else {
            // The text may contain a password, so do not repeat it: this message goes to the app's log.
            throw ValidationError(
                "the URL must be http or https and contain no user, as in https://example.org/file"
            )
        }
        guard let name = file ?? Self.lastPart(url) else {
            throw ValidationError("\(Terminal.harmless(url)) does not name a file: write the file's name after the URL")
        }
        var request = StartTransferRequest(direction: "download", url: url, file: name)
        request.sha256 = sha256
        try transfer.start(request, output)
    }

    private static func lastPart(_ url: String) -> String? {
        guard let path = WebAddress(url)?.path.prefix(while: { $0 != "?" }), let slash = path.lastIndex(of: "/") else {
            return nil
        }
        let name = path[path.index(after: slash)...]
        return name.isEmpty || name == "." || name == ".." ? nil : String(name)
    }
}

struct TransferPut: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "put",
        abstract: "Uploads a file in the background; prints the transfer's number."
    )
    .examples(
        "torpor app transfer put backup.tar https://dav.example.org/a.tar",
        "torpor app transfer put --method POST r.json https://a.example.org/r"
    )

    @Argument(help: "The file to send, in the app's state directory or a data folder.", completion: .file())
    var file: String
    @Argument(help: "The URL to upload to, http or https.")
    var url: String
    @Option(help: ArgumentHelp("The HTTP method, PUT or POST.", valueName: "method"))
    var method = "PUT"
    @Flag(help: "Retry a POST even if the server may have accepted it already.")
    var retry = false
    @OptionGroup var transfer: TransferOptions
    @OptionGroup var output: OutputOptions

    package func run() throws {
        var request = StartTransferRequest(direction: "upload", url: url, file: file)
        request.method = method
        request.retry = retry
        try transfer.start(request, output)
    }
}

struct TransferList: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "Shows the app's transfers.")
        .examples("torpor app transfer list", "torpor app transfer list --session episodes")

    @Option(help: ArgumentHelp("Show only the transfers of this session.", valueName: "name"))
    var session: String?
    @OptionGroup var output: OutputOptions

    package func run() throws {
        let items = try Self.items(session: session)
        guard !output.json else { return Output.document(.array(items.map(\.json))) }
        Output.page(items.isEmpty ? "no transfers\n" : TransferPage.table(items, withApps: false).text)
    }

    /// All of the app's transfers. A reply may have only a part of them.
    static func items(session: String?) throws -> [TransferInfo] {
        var items: [TransferInfo] = []
        while true {
            let reply = try AppSide.call(.transfers(session: session, after: items.last?.id))
            let part = try TransferPage.items(reply)
            items += part
            if part.isEmpty || reply["more"]?.boolValue != true { return items }
        }
    }
}

struct TransferCancel: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel",
        abstract: "Cancels a transfer and removes its partial file."
    )
    .examples("torpor app transfer cancel 17")

    @Argument(help: "The transfer's number.")
    var id: Int64
    @OptionGroup var output: OutputOptions

    package func run() throws {
        _ = try AppSide.call(.cancelTransfer(id: id))
        if output.json { Output.document(["ok": true]) }
    }
}

struct TransferLogin: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "login",
        abstract: "Answers a server's request for a login; reads the password from standard input."
    )
    .examples(
        "printf %s \"$PASSWORD\" | torpor app transfer login 17 --user me",
        "torpor app transfer login 17 --cancel"
    )

    @Argument(help: "The transfer's number.")
    var id: Int64
    @Option(help: "The user name for the login.")
    var user: String?
    @Flag(help: "Read a whole Authorization field from standard input instead.")
    var header = false
    @Flag(help: "Give up: the transfer fails.")
    var cancel = false
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if [user != nil, header, cancel].count(where: { $0 }) != 1 {
            throw ValidationError("--user, --header and --cancel: choose one")
        }
    }

    package func run() throws {
        var request = AnswerLoginRequest(id: id)
        request.cancel = cancel
        if !cancel {
            let bytes = try AppSide.bytes(of: "-")
            guard let text = String(validWire: bytes.last == 0x0a ? Array(bytes.dropLast()) : bytes) else {
                throw Failure(status: .usage, message: "standard input is not UTF-8, as a login must be")
            }
            if header { request.header = text } else { (request.user, request.password) = (user, text) }
        }
        _ = try AppSide.call(.answerLogin(request))
        if output.json { Output.document(["ok": true]) }
    }
}

struct TransferWait: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait",
        abstract: "Waits until no transfer of the app, or of a session, is under way; exits with 1 if one failed."
    )
    .examples("torpor app transfer wait --session episodes")

    @Option(help: ArgumentHelp("Wait only for the transfers of this session.", valueName: "name"))
    var session: String?
    @OptionGroup var output: OutputOptions

    package func run() throws { try Self.wait(session: session, ids: nil, output) }

    /// Waits for transfers by polling twice a second. A finished transfer stays in the list until the app has
    /// acknowledged it. If the app does that between two polls, the transfer is missing from the result.
    static func wait(session: String?, ids: Set<Int64>?, _ output: OutputOptions) throws {
        var ended: [Int64: TransferInfo] = [:]
        while true {
            let all = try TransferList.items(session: session)
            let ours = all.filter { ids?.contains($0.id) ?? true }
            for item in ours where item.isOver { ended[item.id] = item }
            if ours.allSatisfy(\.isOver) { break }
            ThisProcess.sleep(.milliseconds(500))
        }
        let items = ended.values.sorted { $0.id < $1.id }
        // The result is reported here, so cancel the message about it that the app would get.
        for item in items { _ = try AppSide.call(.cancelTransfer(id: item.id)) }
        if output.json { Output.document(.array(items.map(\.json))) }
        let failed = items.filter { $0.state != "done" }
        guard let first = failed.first else { return }
        let sentence = first.error ?? "it was \(first.state)"
        let others = failed.count > 1 ? ", and \(failed.count - 1) more failed" : ""
        throw Failure(
            status: .failed,
            message: "\(Terminal.harmless(first.url)): \(Terminal.harmless(sentence))\(others)"
        )
    }
}
