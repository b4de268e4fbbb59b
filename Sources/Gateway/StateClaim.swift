// SPDX-License-Identifier: Apache-2.0

public import Linux
import Varlink
import WireText

/// The rules for a claim of an app's state: by a claim, a machine takes the state over from the machine that pushed it
/// before.
public enum StateClaim {
    /// The last message about the app's state in the server's stream.
    public struct Kept: Sendable, Hashable {
        /// The name of the machine that sent the message.
        public var node: String
        /// When the state was saved, in microseconds since 1970 by the sending machine's clock; nil if the message
        /// contains no state.
        public var savedAt: Int64?

        /// Memberwise initializer.
        public init(node: String, savedAt: Int64?) { (self.node, self.savedAt) = (node, savedAt) }
    }

    /// Which state a claim uses.
    public enum Source: Sendable, Hashable {
        /// The state on this machine's disk.
        case here
        /// The state that the server has.
        case server
        /// The claim is refused, for the reason in this sentence.
        case refused(String)
    }

    /// Decides which state a claim uses.
    ///
    /// - Parameters:
    ///   - kept: the server's last message about the app; nil if there is none.
    ///   - node: the name of this machine.
    ///   - savedAt: when the app's state on this machine's disk was saved; nil if there is none.
    ///   - owner: who owns the app, as the supervisor reports.
    ///   - isForced: whether the user demands this machine's state.
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
            // The app may be running on this machine. So this machine has the newest state, unless another machine has
            // claimed the state since.
            guard isOurs || isForced else {
                return .refused(
                    "this machine owns \(app), but \(kept.node) has claimed its state since: ‘torpor disown \(app) "
                        + "--stop’ here, or claim it with --local, which drops the state of \(kept.node)"
                )
            }
            return .here
        }
        if isForced { return .here }
        // If this machine sent the last message, both times are of the same clock, so they can be compared. A newer
        // state on disk was saved here but never reached the server.
        if isOurs, let savedAt, savedAt > kept.savedAt ?? .min { return .here }
        return .server
    }
}

/// This machine's tokens: one file for each app that this machine has claimed since the boot. A boot empties the
/// folder. A user that can write to the folder decides which states are pushed.
public struct StateTokens: Sendable {
    /// Shows that this machine has claimed an app's state.
    public struct Token: Sendable, Hashable {
        /// A random text that is in each message of this claim and in no message of another claim.
        public var claim: String
        /// The number of the claim's first message in the stream.
        public var sequence: UInt64

        /// Memberwise initializer.
        public init(claim: String, sequence: UInt64) { (self.claim, self.sequence) = (claim, sequence) }
    }

    private let folder: String

    /// - Parameter folder: the path of the folder. ``keep(_:of:)`` creates it.
    public init(folder: String) { self.folder = folder }

    private func path(_ app: String) -> String { folder + "/" + app + ".token" }

    /// The token of an app; nil if there is none, or if its file is damaged.
    public func token(of app: String) -> Token? {
        guard let bytes = try? File.readRegular(path(app), limit: 1 << 12), let json = try? JSON.parse(bytes[...]),
            let claim = json["claim"]?.stringValue, let sequence = json["sequence"]?.intValue
        else { return nil }
        return Token(claim: claim, sequence: UInt64(clamping: sequence))
    }

    /// Stores the token of an app.
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

    // Ownership is noted in a file of its own, so that a note never overwrites a token that another process has stored.
    private func ownedPath(_ app: String) -> String { folder + "/" + app + ".owned" }

    /// Notes that this machine owns the app under the claim of the token. A machine claims an app's state before it
    /// owns the app.
    public func noteOwned(_ token: Token, of app: String) {
        guard !wasOwned(token, app) else { return }
        try? File.replace(ownedPath(app), Array(token.claim.utf8))
    }

    /// Whether this machine has owned the app under the claim of the token.
    public func wasOwned(_ token: Token, _ app: String) -> Bool {
        (try? File.readRegular(ownedPath(app), limit: 1 << 12)) == Array(token.claim.utf8)
    }
}
