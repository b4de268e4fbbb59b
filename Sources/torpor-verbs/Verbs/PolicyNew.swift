// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import PolicyTools
import Varlink

struct PolicyNew: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "new",
        abstract: "Writes a package with a policy that builds at once.",
        discussion: "It is in Swift, or in C with --c. README.md in its folder says how to build and use it."
    )
    .examples(
        "torpor policy new quiet-nights",
        "torpor policy new --c quiet-nights ./policy"
    )

    @Argument(help: "The policy's name, in lower case, as in night-shift.")
    package var name: String
    @Argument(help: "The folder to make; one of the policy's name if none is named.", completion: .directory)
    var directory: String?
    @Flag(name: .customLong("c"), help: "Write the policy in C.")
    var inC = false
    @Option(help: ArgumentHelp("The folder of Torpor's policy kit.", valueName: "path"), completion: .directory)
    var kit: String?
    @Flag(help: "One JSON document on standard output.")
    package var json = false

    package func run() throws {
        let names = try PolicyNames(name)
        let kit = try PolicyKitFolder.find(kit)
        let folder = Self.absolute(directory ?? name)
        let template = PolicyTemplate(names: names, kit: kit)
        let files = inC ? template.filesInC : template.filesInSwift
        try Self.write(files, to: folder)
        guard !json else {
            return Output.document([
                "directory": .string(folder), "kit": .string(kit),
                "files": .array(files.map { .string(folder + "/" + $0.path) }),
                "library": .string(folder + "/" + template.builtLibrary(inC: inC)),
            ])
        }
        let isThere = (try? AppSide.program(inC ? "make" : "swift")) != nil
        let build = inC ? isThere ? "make" : template.compilation : "swift build -c release"
        Output.write(
            """
            The policy \(name) is in \(folder). To build and check it:
              cd \(ShellWord.quoted(folder))
              \(build)
              torpor policy check \(template.builtLibrary(inC: inC))

            """
        )
        if inC, !["cc", "gcc", "clang"].contains(where: { (try? AppSide.program($0)) != nil }) {
            Output.write("There is no C compiler on PATH: install one, such as the package gcc.\n")
        }
        guard !inC, !isThere else { return }
        Output.write(
            """
            There is no swift on PATH: install Swift 6.2 or later (swift.org), or write it in C, which needs only a C compiler:
              rm -r \(ShellWord.quoted(folder))
              torpor policy new --c \(name)\(directory.map { " " + ShellWord.quoted($0) } ?? "")

            """
        )
    }

    private static func absolute(_ path: String) -> String {
        var path = path
        while path.utf8.count > 1, path.hasSuffix("/") { path.removeLast() }
        return path.hasPrefix("/") ? path : ThisProcess.directory + "/" + path
    }

    private static func write(_ files: [(path: String, text: String)], to folder: String) throws(Failure) {
        guard !File.exists(folder), (try? File.readLink(folder)) == nil else {
            throw Failure(status: .usage, message: "\(folder) exists: name another folder, or remove it")
        }
        do throws(Errno) {
            for (path, text) in files {
                if let parent = File.parent(of: folder + "/" + path) { try File.makeDirectories(parent) }
                try File.write(folder + "/" + path, text)
            }
        } catch {
            throw Failure(status: .failed, message: "\(folder) cannot be written: \(error)")
        }
    }
}

/// The name of a policy, and names derived from it.
struct PolicyNames {
    package let name: String
    /// The name of the policy's type and module, such as `NightShiftPolicy`.
    let type: String
    var library: String { "lib\(type).so" }

    init(_ name: String) throws(Failure) {
        let isSound = name.utf8.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
        }
        guard isSound, let first = name.utf8.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first),
            name.utf8.count <= Self.limit
        else {
            throw Failure(
                status: .usage,
                message:
                    "“\(name)” cannot be a policy's name: use at most \(Self.limit) characters, only a-z, 0-9, - "
                    + "and _, and begin with a letter, as in night-shift"
            )
        }
        let words = name.split { $0 == "-" || $0 == "_" }.map { $0.prefix(1).uppercased() + $0.dropFirst() }
        let joined = words.joined()
        self.name = name
        type = words.count > 1 && words.last == "Policy" ? joined : joined + "Policy"
    }

    private static let limit = 48
}

/// The folder with the policy kit and the C header.
enum PolicyKitFolder {
    static let header = "Sources/TorporPolicyABI/include/torpor_policy.h"

    /// Finds the kit: in the folder that the user gives, otherwise beside this program if that is installed,
    /// otherwise in the sources that it was built from.
    static func find(_ named: String?) throws(Failure) -> String {
        if let named {
            guard let path = try? File.realPath(named), isKit(path) else {
                throw Failure(
                    status: .usage,
                    message: "\(named) is not Torpor's policy kit: it has no Package.swift, or no \(header)"
                )
            }
            return path
        }
        let program = OwnProgram.path ?? ""
        let beside = File.parent(of: program).map { $0 + "/../share/torpor/policy-kit" }
        if let beside, let path = try? File.realPath(beside), isKit(path) { return path }
        var folder = File.parent(of: program)
        while let here = folder {
            let path = here + "/packaging/policy-kit"
            if isKit(path) { return path }
            folder = here == "/" ? nil : File.parent(of: here)
        }
        throw Failure(
            status: .failed,
            message: "Torpor's policy kit is not beside this program (../share/torpor/policy-kit): name it with --kit"
        )
    }

    private static func isKit(_ path: String) -> Bool {
        File.exists(path + "/Package.swift") && File.exists(path + "/" + header)
    }
}
