// SPDX-License-Identifier: Apache-2.0

/// The command line of torpor-transfer.
struct Options: Sendable {
    /// The path of the folder with partial files.
    var parts = ""
    /// The app's folders. A transfer names the folder of its file by an index into this array.
    var roots: [String] = []
    /// Further paths that Landlock allows this process to read.
    var readable: [String] = []
    /// If no byte arrives for this many seconds, an attempt ends.
    var stall = 60
    /// Whether to run without Landlock, for tests.
    var isUnconfined = false

    static let usage = """
        Usage: torpor-transfer --parts FOLDER --root FOLDER [--root FOLDER …] [--read PATH …] [--stall SECONDS]
                               [--unconfined] [--version] [--help]

        Moves files between HTTP servers and an app's folders. torpord starts it, with a socket as descriptor 3.

          --parts FOLDER   keep files in FOLDER until they are complete
          --root FOLDER    download to FOLDER and upload from it
          --read PATH      allow PATH to be read too, such as a CA certificate
          --stall SECONDS  end an attempt after SECONDS without a byte (default: 60)
          --unconfined     run without Landlock
          --version        print the version
        """

    /// A mistake in the arguments.
    struct Mistake: Error {
        let sentence: String
    }

    init(_ arguments: some Sequence<String>) throws(Mistake) {
        var rest = Array(arguments)[...]
        while let argument = rest.popFirst() {
            if argument == "--unconfined" {
                isUnconfined = true
                continue
            }
            guard ["--parts", "--root", "--read", "--stall"].contains(argument) else {
                throw Mistake(sentence: "there is no option \(argument): see torpor-transfer --help")
            }
            guard let value = rest.popFirst(), !value.isEmpty else {
                throw Mistake(sentence: "\(argument) needs a value")
            }
            switch argument {
            case "--parts": parts = value
            case "--root": roots.append(value)
            case "--read": readable.append(value)
            default:
                guard let seconds = Int(value), (1...86_400).contains(seconds) else {
                    throw Mistake(sentence: "--stall needs a number of seconds from 1 to 86400")
                }
                stall = seconds
            }
        }
        guard !parts.isEmpty, !roots.isEmpty else { throw Mistake(sentence: "--parts and --root are required") }
    }
}
