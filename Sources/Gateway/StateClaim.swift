// SPDX-License-Identifier: Apache-2.0

public import Linux
import Varlink
import WireText

/// What a claim of an app's state does.
public enum StateClaim {
    /// The last message about the app's state at the server.
    public struct Kept: Sendable, Hashable {
        /// The machine that sent it.
        public var node: String
        /// When the state was saved, by that machine's clock, microseconds since 1970; nil if there was none.
        public var savedAt: Int64?

        /// Memberwise initializer.
        public init(node: String, savedAt: Int64?) { (self.node, self.savedAt) = (node, savedAt) }
    }

    /// Where the state comes from.
    public enum Source: Sendable, Hashable {
        /// From this machine's disk.
        case here
        /// From the server.
        case server
        /// The claim must not be made; with a sentence.
        case refused(String)
    }

    /// Decides which state a claim brings up.
    ///
    /// - Parameters:
    ///   - kept: the last message; nil if there is none.
    ///   - node: this machine.
    ///   - savedAt: when the app's state on this machine's disk was saved; nil if there is none.
    ///   - owner: who owns the app, as the supervisor says.
    ///   - isForced: a person wants this machine's state.
    public static func source(
        of app: String,
        kept: Kept?,
        node: String,
        savedAt: Int64?,
        owner: String,
        isForced: Bool
    ) -> Source {
        guard let kept else { return .here }
        let isOurs = kept.node == node
        if owner == "here" {
            // The app may run: what is here is the newest, unless another machine has taken over since.
            guard isOurs || isForced else {
                return .refused(
                    "this machine owns \(app), but \(kept.node) has claimed its state since: ‘torpor disown \(app) "
                        + "--stop’ here, or claim it with --local, which drops the state of \(kept.node)"
                )
            }
            return .here
        }
        if isForced { return .here }
        // Only times of the same clock are compared. This machine was the last that had the state, and has saved a newer
        // one that did not reach the server.
        if isOurs, let savedAt, savedAt > kept.savedAt ?? .min { return .here }
        return .server
    }
}

/// The tokens of this machine: a file for each app that was claimed here since the boot, in a folder that a boot empties.
/// Whoever can write to the folder decides what is pushed.
public struct StateTokens: Sendable {
    /// The token of an app.
    public struct Token: Sendable, Hashable {
        /// Is in each message of the claim, and in none of another.
        public var claim: String
        /// The message's number in the stream.
        public var sequence: UInt64

        /// Memberwise initializer.
        public init(claim: String, sequence: UInt64) { (self.claim, self.sequence) = (claim, sequence) }
    }

    private let folder: String

    /// - Parameter folder: the folder; made when it is needed.
    public init(folder: String) { self.folder = folder }

    private func path(_ app: String) -> String { folder + "/" + app + ".token" }

    /// The token of an app; nil if there is none, or if the file is not one.
    public func token(of app: String) -> Token? {
        guard let bytes = try? File.readRegular(path(app), limit: 1 << 12), let json = try? JSON.parse(bytes[...]),
            let claim = json["claim"]?.stringValue, let sequence = json["sequence"]?.intValue
        else { return nil }
        return Token(claim: claim, sequence: UInt64(clamping: sequence))
    }

    /// Keeps a token.
    public func keep(_ token: Token, of app: String) throws(Errno) {
        try File.makeDirectories(folder)
        let json: JSON = ["claim": .string(token.claim), "sequence": .int(Int64(clamping: token.sequence))]
        try File.replace(path(app), json.serialised() + [10])
    }

    /// Removes a token, if there is one.
    public func remove(_ app: String) {
        try? File.remove(path(app))
        try? File.remove(ownedPath(app))
    }

    // MARK: Owned claims

    // A file of its own: one that is written here never takes the place of a token that another process has claimed.
    private func ownedPath(_ app: String) -> String { folder + "/" + app + ".owned" }

    /// Notes that this machine owns the app under the claim of the token. A claim comes before the ownership.
    public func noteOwned(_ token: Token, of app: String) {
        guard !wasOwned(token, app) else { return }
        try? File.replace(ownedPath(app), Array(token.claim.utf8))
    }

    /// Whether this machine has owned the app under the claim of the token.
    public func wasOwned(_ token: Token, _ app: String) -> Bool {
        (try? File.readRegular(ownedPath(app), limit: 1 << 12)) == Array(token.claim.utf8)
    }
}
