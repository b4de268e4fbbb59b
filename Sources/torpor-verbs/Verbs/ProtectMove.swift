// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink
import WireText

struct ProtectMove: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move",
        abstract: "Encrypts a protected folder that has files already.",
        discussion: """
            Copies the files into an encrypted folder, compares every byte, puts that folder in the place of the other \
            one, and then removes the originals. Data must be unlocked, and the app must not run. If it is \
            interrupted, nothing is lost: run it again.
            """
    )
    .examples(
        "torpor protect move web",
        "torpor protect move web --stop",
        "torpor protect move web --decrypt"
    )

    @OptionGroup var app: AppArgument
    @Flag(help: "End the app first if it runs, and start it again afterwards.")
    var stop = false
    @Flag(help: "Move the files out of the encrypted folder, into one that only its mode closes.")
    var decrypt = false
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let manager = try Manager(options)
        let name = app.app
        let all = try ProtectedApps.read(manager.call(.protection))
        guard let info = all.first(where: { $0.app == name }) else {
            let what = all.isEmpty ? "no app has" : "\(name) has no"
            throw Failure(
                status: .failed,
                message: "\(what) protected data: write protected = \"complete\" in its table, and apply that"
            )
        }
        let list = try manager.call(.listOf([name]))["apps"]?.arrayValue ?? []
        guard let root = ProtectedApps.root([info]), let owner = try? File.status(root).uid else {
            throw Failure(status: .failed, message: "\(name) has no protected folder yet: its first launch makes it")
        }
        guard owner == Users.effectiveUID else {
            throw Failure(
                status: .failed,
                message: "\(root) belongs to \(Users.lookup(uid: owner)?.name ?? "user \(owner)"), as whom the "
                    + "supervisor runs: run this as that user"
            )
        }
        let wasRunning = try end(name, list, info, manager)
        let result: JSON
        do {
            result = try move(root, name)
        } catch {
            // Do not wait for the launch: if data was locked during the move, the launch waits for the unlock.
            if wasRunning { try? Self.ask(.start, name, manager, waits: false) }
            throw error
        }
        let now = lookAgain(name, manager)
        if options.json {
            Output.document(result)
        } else {
            let count = result["files"]?.intValue ?? 0
            let how = decrypt ? "not encrypted" : "encrypted"
            let size = Times.memory(bytes: result["bytes"]?.intValue ?? 0)
            let moved = count == 0 ? "" : ": \(count) \(count == 1 ? "file" : "files") moved, \(size)"
            Output.write("the folder of \(name) is \(how)\(moved)\n")
            if decrypt, now?.state == "locked" {
                Output.write("it is launched only with protected_fallback = \"permissions\": set that in its table\n")
            }
        }
        if wasRunning { try Self.ask(.start, name, manager) }
    }

    /// Ends the app if the user has agreed. Returns whether the app must be started again.
    private func end(_ name: String, _ list: [JSON], _ info: ProtectionInfo, _ manager: Manager) throws -> Bool {
        guard let app = list.first, app["state"]?.stringValue != "not-running" || app["transition"]?.stringValue != nil
        else { return false }
        guard stop else {
            throw Failure(
                status: .failed,
                message: "\(name) is running: stop it first, or add --stop; nothing is changed"
            )
        }
        // Check this before the app is ended, because locked data could not be moved.
        guard info.state == "unlocked" else {
            throw Failure(
                status: .failed,
                message: "the data of \(name) is locked: run ‘torpor protect unlock’ first; nothing is changed"
            )
        }
        try Self.ask(.stop, name, manager)
        return true
    }

    private static func ask(_ verb: Verb, _ name: String, _ manager: Manager, waits: Bool = true) throws {
        var request = VerbRequest(verb: verb, apps: [name])
        request.wait = waits
        request.token = .random()
        // A stopped app keeps its state, so that its next launch continues where this run ended.
        request.keepState = verb == .stop
        let reply = try manager.call(.verb(request))
        let results = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("results") { json throws(FieldError) in try VerbResult(json: json) }
        }
        if let failed = results.first(where: { !$0.ok }) {
            throw Failure(status: .failed, message: VerbRunner.sentence(failed))
        }
    }

    /// Makes torpor-protect move the files, outside of torpord. torpor-protect ends with this process, also if the user
    /// interrupts it.
    private func move(_ root: String, _ name: String) throws -> JSON {
        guard let program = ThisProcess.companion("torpor-protect", variable: "TORPOR_PROTECT") else {
            throw Failure(
                status: .failed,
                message: "torpor-protect is neither beside torpor nor in ../libexec/torpor: install it"
            )
        }
        let (output, status) = try Failure.of { () throws(Errno) -> ([UInt8], Int32) in
            let pipe = try Descriptor.pipe()
            let nothing = try File.open("/dev/null", [.readWrite])
            let child = try ChildProcess(
                program,
                arguments: [program, "move", root, name, decrypt ? "decrypt" : "encrypt"],
                environment: ThisProcess.environment,
                dependingWith: (nothing.raw, pipe.write.raw, pipe.write.raw)
            )
            pipe.write.close()
            let output = try pipe.read.withRaw { raw throws(Errno) in try File.read(descriptor: raw) }
            return (output, child.reap())
        }
        let line = output.prefix { $0 != UInt8(ascii: "\n") }
        if WaitStatus.exitCode(status) == 0, let result = try? JSON.parse(line) { return result }
        let why = line.isEmpty ? "torpor-protect was ended: run it again" : String(wire: Array(line.prefix(2000)))
        throw Failure(status: .failed, message: Terminal.harmless(why))
    }

    /// Makes torpord inspect the folder again, so that the state that torpord reports for it is current. Returns that
    /// state.
    private func lookAgain(_ name: String, _ manager: Manager) -> ProtectionInfo? {
        var last: ProtectionInfo?
        for _ in 0..<Self.mostLooks {
            last = (try? ProtectedApps.read(manager.call(.protection)))?.first { $0.app == name }
            guard let info = last, info.isEncrypted != !decrypt else { break }
            ThisProcess.sleep(.milliseconds(50))
        }
        return last
    }

    /// How many times to ask torpord for the folder's state until it has changed. The number is limited, because while
    /// data is locked, torpord inspects the folder only at the next unlock.
    private static let mostLooks = 20
}
