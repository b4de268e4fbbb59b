// SPDX-License-Identifier: Apache-2.0

/// What torpor-web is started with.
public struct WebOptions: Hashable, Sendable {
    /// The socket of torpord; nil for the one that is found.
    public var socket: String?
    /// Where to listen.
    public var address = ListenAddress.tcp(host: "127.0.0.1", port: 7878)
    /// The file whose first line is the token; nil for one of its own.
    public var tokenFile: String?
    /// Names by which a proxy is known.
    public var hosts: [String] = []
    /// Nothing can be changed.
    public var isReadOnly = false
    /// A folder whose files take the place of those in the program.
    public var assets: String?
    /// The version is asked for.
    public var wantsVersion = false
    /// The options are asked for.
    public var wantsHelp = false

    /// What is wrong with the words that were given.
    public struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
        /// A sentence.
        public let description: String
    }

    /// What `--help` says.
    public static let usage = """
        Usage: torpor-web [--socket PATH] [--listen ADDRESS] [--token-file FILE] [--host NAME]… [--read-only]

          --socket PATH      use this control socket of torpord, not the one that torpor finds
          --listen ADDRESS   listen at 127.0.0.1:7878 (default), [::1]:7878, a port of 127.0.0.1, or unix:/path
          --token-file FILE  read the access token from its first line; default: make and keep one
          --host NAME        accept this host name too, such as a proxy's; may be given several times
          --read-only        refuse all changes, even those that torpord allows
          --assets DIR       serve the page's files from here, for work on them
          --version          print the version
        """

    /// Reads the words behind the program's name.
    public init(_ words: [String]) throws(Problem) {
        var words = words[...]
        while let word = words.popFirst() {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            func value() throws(Problem) -> String {
                if parts.count == 2 { return parts[1] }
                guard let next = words.popFirst() else {
                    throw Problem(description: "\(word) needs a value: see torpor-web --help")
                }
                return next
            }
            switch parts[0] {
            case "--socket": socket = try value()
            case "--listen":
                let text = try value()
                guard let address = ListenAddress(text) else {
                    throw Problem(
                        description: "\(text) is not an address to listen at: write 127.0.0.1:7878, [::1]:7878 or "
                            + "unix:/path"
                    )
                }
                self.address = address
            case "--token-file": tokenFile = try value()
            case "--host": hosts.append(try value())
            case "--assets": assets = try value()
            case "--read-only": isReadOnly = true
            case "--version": wantsVersion = true
            case "--help", "-h": wantsHelp = true
            default: throw Problem(description: "there is no option \(word): see torpor-web --help")
            }
        }
        if !address.isLocal, tokenFile == nil {
            throw Problem(
                description: "other machines can reach \(address): set a token with --token-file, or listen at "
                    + "127.0.0.1 behind a proxy with TLS"
            )
        }
    }
}
