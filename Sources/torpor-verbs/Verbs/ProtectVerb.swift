// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import DataProtection
import EverydayVerbs
import Linux
import ProtectionKeys
import TorporAPI
import Varlink

struct ProtectVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "protect",
        abstract: "Locks and unlocks the protected folders of apps, or shows them.",
        discussion: """
            An app with protected = "complete" has a folder that it can read only while data is unlocked. A lock tells \
            apps, waits for their answers, closes the folders, and ends apps that still have files of them open.
            """,
        subcommands: [
            ProtectStatus.self, ProtectLock.self, ProtectUnlock.self, ProtectInit.self, ProtectPassphrase.self,
            ProtectMove.self,
        ],
        defaultSubcommand: ProtectStatus.self
    )
    .examples(
        "torpor protect",
        "torpor protect init",
        "torpor protect unlock",
        "torpor protect lock"
    )
}

struct ProtectStatus: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Shows the protected folders of apps."
    )
    .examples("torpor protect status")

    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let reply = try Manager(options).call(.protection)
        guard !options.json else { return Output.document(reply["apps"] ?? []) }
        let all = try ProtectedApps.read(reply)
        guard !all.isEmpty else { return Output.write("no app has protected data\n") }
        var table = Table(["APP", "PROTECTED", "STATE", "FOLDER"], whole: [0, 1])
        for info in all {
            let colour: Terminal.Colour = info.state == "unlocked" ? .green : .yellow
            table.append([.init(info.app), .init(info.kind), .init(info.text, colour), .init(info.folder)])
        }
        Output.page(table.text)
    }
}

struct ProtectLock: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lock",
        abstract: "Locks protected data; returns when it is locked."
    )
    .examples("torpor protect lock")

    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let reply = try Manager(options).call(.lockData)
        guard !options.json else { return Output.document(reply) }
        Output.write("locked" + (reply["message"]?.stringValue.map { ", " + $0 } ?? "") + "\n")
    }
}

struct ProtectUnlock: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unlock",
        abstract: "Unlocks protected data.",
        discussion: """
            Asks for the passphrase of torpor protect init, if there is one, and gives the kernel the keys of apps. \
            torpord never has them. A folder that no key protects is opened without a passphrase.
            """
    )
    .examples(
        "torpor protect unlock",
        "torpor protect unlock --recovery",
        "systemd-creds decrypt /etc/torpor/passphrase | torpor protect unlock --stdin"
    )

    @Flag(help: "Read the password as pam_exec gives it, and unlock for the user in PAM_USER.")
    var pam = false

    @Flag(name: .customLong("stdin"), help: "Read the passphrase from standard input, up to its first newline or NUL.")
    var readsInput = false
    @Flag(help: "Unlock with the recovery key instead of the passphrase.")
    var recovery = false
    @Argument(
        parsing: .postTerminator,
        help: ArgumentHelp("A command whose output is the passphrase, after --.", valueName: "command")
    )
    var command: [String] = []
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if !command.isEmpty, readsInput {
            throw ValidationError("the passphrase comes from a command or from --stdin, not from both")
        }
        if !command.isEmpty, pam {
            throw ValidationError("the passphrase comes from a command or from PAM, not from both")
        }
    }

    package func run() throws {
        try Asked.keepPrivate()
        var options = options
        if pam { options.socket = try PAMUser.become(options.socket) }
        let manager = try Manager(options)
        let apps = try ProtectedApps.read(manager.call(.protection))
        var given: GivenKeys?
        if let root = ProtectedApps.root(apps) {
            let ring = try Failure.of { () throws(KeyError) in try KeyRing(root) }
            if ring.isThere {
                let what = recovery ? "recovery key" : "passphrase"
                let secret = try command.isEmpty ? Asked.secret(what, readsInput || pam) : Asked.output(of: command)
                let keys = try Failure.of { () throws(KeyError) in
                    try recovery ? ring.open(recovery: secret) : ring.open(passphrase: secret)
                }
                given = try GivenKeys(keys, ring, apps, root)
            }
        }
        let reply: JSON
        do {
            try given?.give()
            do {
                reply = try manager.call(.unlockData)
            } catch {
                // torpord was still locking data, which removes the keys from the kernel. Give the kernel the keys once
                // more.
                guard let given else { throw error }
                try given.give()
                reply = try manager.call(.unlockData)
            }
        } catch {
            // The unlock may have succeeded and only the reply may be lost. Keep the keys in the kernel if torpord has
            // unlocked data.
            let now = try? ProtectedApps.read(manager.call(.protection))
            if now?.contains(where: { $0.state == "unlocked" && $0.kind == "complete" }) != true { given?.takeBack() }
            throw error
        }
        given?.keep()
        guard !options.json else { return Output.document(reply) }
        Output.write("unlocked" + (reply["message"]?.stringValue.map { "; " + $0 } ?? "") + "\n")
    }
}

struct ProtectInit: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Makes the keys of protected folders, and prints a recovery key once.",
        discussion: """
            The keys are sealed by the passphrase (Argon2id). For a screen locker that unlocks data, it is the password \
            of the login. Without the passphrase and the recovery key the data is lost.
            """
    )
    .examples("torpor protect init")

    @Flag(name: .customLong("stdin"), help: "Read the passphrase from standard input, up to its first newline or NUL.")
    var readsInput = false
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        try Asked.keepPrivate()
        let apps = try ProtectedApps.read(Manager(options).call(.protection))
        guard let root = ProtectedApps.root(apps) else {
            throw Failure(
                status: .failed,
                message: "no app has protected data: write protected = \"complete\" in its table, and apply that"
            )
        }
        try Failure.of { () throws(KeyError) in try KeyRing.prepare(root) }
        let ring = try Failure.of { () throws(KeyError) in try KeyRing(root) }
        guard !ring.isThere else {
            throw Failure(
                status: .failed,
                message: "there are keys already: ‘torpor protect passphrase’ changes their passphrase"
            )
        }
        guard ProtectedApps.encrypts(root) else {
            throw Failure(
                status: .failed,
                message:
                    "the filesystem of \(root) encrypts no folders: enable it (ext4: ‘tune2fs -O encrypt DEVICE’), or set "
                    + "protected_fallback = \"permissions\", which needs no keys"
            )
        }
        let passphrase = try Asked.newPassphrase(readsInput)
        let (_, recovery) = try Failure.of { () throws(KeyError) in try ring.make(passphrase) }
        let text = recovery.groups
        try Failure.of { () throws(Errno) in
            if !options.json {
                try ThisProcess.write("recovery key, shown only now; keep it apart from this machine:\n")
            }
            if options.json { try ThisProcess.write("{\"recovery\": \"") }
            try Descriptor.writeAll(1, Array(text.bytes))
            try ThisProcess.write(options.json ? "\"}\n" : "\n")
        }
    }
}

struct ProtectPassphrase: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "passphrase",
        abstract: "Changes the passphrase; the recovery key stays.",
        discussion: "With --stdin, the first line of standard input is the old passphrase, the second the new one."
    )
    .examples("torpor protect passphrase", "torpor protect passphrase --recovery")

    @Flag(name: .customLong("stdin"), help: "Read the old and the new passphrase from standard input, a line each.")
    var readsInput = false
    @Flag(help: "Give the recovery key instead of the old passphrase.")
    var recovery = false
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        try Asked.keepPrivate()
        let apps = try ProtectedApps.read(Manager(options).call(.protection))
        guard let root = ProtectedApps.root(apps) else {
            throw Failure(status: .failed, message: "no app has protected data")
        }
        let ring = try Failure.of { () throws(KeyError) in try KeyRing(root) }
        guard ring.isThere else {
            throw Failure(status: .failed, message: "there are no keys yet: run ‘torpor protect init’")
        }
        let old = try Asked.secret(recovery ? "recovery key" : "old passphrase", readsInput)
        let keys = try Failure.of { () throws(KeyError) in
            try recovery ? ring.open(recovery: old) : ring.open(passphrase: old)
        }
        let new = try Asked.newPassphrase(readsInput)
        try Failure.of { () throws(KeyError) in try ring.change(keys, to: new) }
        if !options.json { Output.write("the passphrase is changed\n") } else { Output.document(["ok": true]) }
    }
}

enum ProtectedApps {
    static func read(_ reply: JSON) throws -> [ProtectionInfo] {
        try Manager.read { () throws(FieldError) in
            try Fields(reply).list("apps") { json throws(FieldError) in try ProtectionInfo(json: json) }
        }
    }

    /// The folder that contains all protected folders. torpord creates it when it first opens or closes one of them.
    static func root(_ apps: [ProtectionInfo]) -> String? {
        apps.first.flatMap { File.parent(of: $0.folder) }.flatMap { File.parent(of: $0) }
    }

    static func encrypts(_ root: String) -> Bool {
        switch try? Encryption.standing(of: Folder(root)) {
        case .plain, .encrypted: true
        case .unsupported, nil: false
        }
    }
}

/// Reads secrets that a user types, or that another program outputs.
enum Asked {
    /// How long a command may keep running after it has output the passphrase.
    private static let patience = Duration.seconds(5)

    /// Keeps this process's memory out of core dumps, and unreadable for other processes of the same user.
    static func keepPrivate() throws {
        try Failure.of { () throws(Errno) in
            try Confinement.dumpNoCore()
            try Confinement.keepMemoryPrivate()
        }
    }

    static func secret(_ what: String, _ readsInput: Bool) throws -> Secret {
        let isTyped = !readsInput
        if isTyped {
            guard ThisProcess.isTerminal(0) else {
                throw Failure(
                    status: .usage,
                    message: "standard input is no terminal: write --stdin to read the \(what) from it"
                )
            }
            try? ThisProcess.write("\(what): ", to: 2)
        }
        let secret: Secret? = try Failure.of { () throws(Errno) in
            isTyped
                ? try TerminalDevice.withoutEcho(0) { () throws(Errno) in try Secret.line(from: 0) }
                : try Secret.line(from: 0)
        }
        if isTyped { try? ThisProcess.write("\n", to: 2) }
        guard let secret else { throw Failure(status: .failed, message: "the \(what) has more than 1024 bytes") }
        // The user has typed Control-C. In this mode of the terminal, it is an ordinary character and causes no signal.
        if isTyped, secret.bytes.contains(3) { throw Failure(status: .failed, message: "cancelled") }
        return secret
    }

    /// The first line of a command's output.
    static func output(of command: [String]) throws -> Secret {
        let program = try AppSide.program(command[0])
        let (secret, status) = try Failure.of { () throws(Errno) -> (Secret?, Int32?) in
            let pipe = try Descriptor.pipe()
            // If standard error is not a terminal, discard the command's messages. They might contain the passphrase,
            // which must not get into a log.
            let nothing = try File.open("/dev/null", [.readWrite])
            // The kernel kills the command when this process ends. torpord ends this process if data is locked.
            let child = try ChildProcess(
                program,
                arguments: command,
                environment: ThisProcess.environment,
                dependingWith: (0, pipe.write.raw, ThisProcess.isTerminal(2) ? 2 : nothing.raw)
            )
            pipe.write.close()
            let secret = try Secret.line(from: pipe.read.raw)
            pipe.read.close()
            return (secret, child.reap(within: patience))
        }
        if let status, let code = WaitStatus.exitCode(status), code != 0 {
            throw Failure(status: .failed, message: "\(command[0]) gave no passphrase: exit status \(code)")
        }
        guard let secret, secret.count > 0 else {
            throw Failure(status: .failed, message: "\(command[0]) gave no passphrase")
        }
        return secret
    }

    static func newPassphrase(_ readsInput: Bool) throws -> Secret {
        let first = try secret(readsInput ? "passphrase" : "new passphrase", readsInput)
        guard first.count > 0 else { throw Failure(status: .failed, message: "the passphrase must not be empty") }
        guard !readsInput else { return first }
        let second = try secret("the same again", false)
        guard first.bytes.elementsEqual(second.bytes) else {
            throw Failure(status: .failed, message: "the two passphrases differ: nothing is changed")
        }
        return first
    }
}

extension Failure {
    /// Runs `body`. If it throws, throws a failure with the error's text.
    static func of<Result, Problem: Error>(_ body: () throws(Problem) -> Result) throws(Failure) -> Result {
        do throws(Problem) { return try body() } catch { throw Failure(status: .failed, message: "\(error)") }
    }
}
