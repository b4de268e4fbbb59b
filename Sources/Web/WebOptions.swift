// SPDX-License-Identifier: Apache-2.0

/// The command line of torpor-web.
public struct WebOptions: Hashable, Sendable {
    /// The path of torpord's socket; nil for the default one.
    public var socket: String?
    /// The address to listen on.
    public var address = ListenAddress.tcp(host: "127.0.0.1", port: 7878)
    /// The path of a file whose first line is the token; nil for torpor-web's own file.
    public var tokenFile: String?
    /// Further allowed host names, those of a proxy.
    public var hosts: [String] = []
    /// Whether all changes are refused.
    public var isReadOnly = false
    /// The path of a folder whose files replace the built-in ones.
    public var assets: String?
    /// `--version` was given.
    public var wantsVersion = false
    /// `--help` was given.
    public var wantsHelp = false

    /// A mistake on the command line.
    public struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
        /// The mistake as a sentence.
        public let description: String
    }

    /// The text of `--help`.
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

    /// Parses the arguments after the program's name.
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
