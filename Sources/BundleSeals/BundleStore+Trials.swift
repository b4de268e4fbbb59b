// SPDX-License-Identifier: Apache-2.0

public import Bundles
import Linux
import WireText

/// What is known of the launches of installed versions, as files beside them:
///
/// | file | content |
/// |---|---|
/// | `.run-APP` | the version that an app was last launched from, and how it was verified |
/// | `.ready-VERSION` | nothing: an app of that version has come up |
/// | `.failures-VERSION` | how many launches have failed before one came up |
extension BundleStore {
    static let launchMark = ".run-"

    /// After so many launches that do not come up, the version before is put back.
    public static let tries = 2

    private func mark(_ name: String, app: String) -> String { "\(place(name))/\(Self.launchMark)\(app)" }

    private func ready(_ name: String, _ version: String) -> String { "\(place(name))/.ready-\(version)" }

    func failures(_ name: String, _ version: String) -> String { "\(place(name))/.failures-\(version)" }

    private func failureCount(_ name: String, _ version: String) -> Int {
        guard let text = try? File.readString(failures(name, version), limit: 16) else { return 0 }
        return text.split(separator: "\n").first.flatMap { Int($0) } ?? 0
    }

    /// Records that an app is launched from a version: an install keeps that version.
    public func launches(_ name: String, _ version: String, app: String, verified: String = "") throws(BundleFault) {
        do throws(Errno) {
            let (path, text) = (mark(name, app: app), Array("\(version) \(verified)\n".utf8))
            if (try? File.read(path, limit: 256)) == text { return }
            try File.replace(path, text, draft: "\(place(name))/.draft-\(app)")
        } catch {
            throw BundleFault("\(mark(name, app: app)) cannot be written", error)
        }
    }

    /// The version that an app was last launched from, if it is still there.
    public func launchedVersion(_ name: String, app: String) -> (version: String, verified: String)? {
        guard let text = try? File.readString(mark(name, app: app), limit: 256),
            case let words = text.split(whereSeparator: { $0 == " " || $0 == "\n" }).map(String.init),
            let version = words.first, (try? BundleWord.checkVersion(version)) != nil,
            (try? File.kind(place(name, version))) == .directory
        else { return nil }
        return (version, words.count > 1 ? words[1] : "")
    }

    /// Whether it is not known yet that a version comes up, and there is one before it.
    public func isOnTrial(_ name: String, _ version: String) -> Bool {
        current(name) == version && previous(name) != nil && !File.exists(ready(name, version))
    }

    /// The version in whose place the current one was put back.
    public func putBack(_ name: String) -> String? {
        previous(name).flatMap { failureCount(name, $0) >= Self.tries ? $0 : nil }
    }

    /// Records that an app of a version has come up.
    public func cameUp(_ name: String, _ version: String) throws(BundleFault) {
        guard (try? File.kind(place(name, version))) == .directory else { return }
        do throws(Errno) {
            if !File.exists(ready(name, version)) { try File.write(ready(name, version), []) }
            if File.exists(failures(name, version)) { try File.remove(failures(name, version)) }
        } catch {
            throw BundleFault("\(ready(name, version)) cannot be written", error)
        }
    }

    /// Counts a launch of a version that did not come up, and puts the version before back after the second one.
    ///
    /// - Returns: the version that is current instead of it; nil if it stays.
    public func failed(_ name: String, _ version: String) throws(BundleFault) -> String? {
        let held = try lock(name)
        defer { withExtendedLifetime(held) {} }
        // It was put back before, and torpord could not take that up then.
        if putBack(name) == version { return current(name) }
        guard isOnTrial(name, version), let before = previous(name) else { return nil }
        let count = failureCount(name, version) + 1
        do throws(Errno) {
            try File.replace(
                failures(name, version),
                Array("\(count)\n".utf8),
                sync: true,
                draft: "\(place(name))/.draft-failures"
            )
        } catch {
            throw BundleFault("\(failures(name, version)) cannot be written", error)
        }
        guard count >= Self.tries else { return nil }
        try exchange(name, version, before)
        return before
    }
}
