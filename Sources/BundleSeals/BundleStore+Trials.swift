// SPDX-License-Identifier: Apache-2.0

public import Bundles
import Linux
import WireText

/// Files beside the installed versions that record their launches:
///
/// | file | content |
/// |---|---|
/// | `.run-APP` | the version that the app was last launched from, and how it was verified |
/// | `.ready-VERSION` | nothing; the file exists once a launch of that version has succeeded |
/// | `.failures-VERSION` | how many launches of that version failed since it was installed or last succeeded |
extension BundleStore {
    static let launchMark = ".run-"

    /// After this many failed launches of a new version, the previous version is put back.
    public static let tries = 2

    private func mark(_ name: String, app: String) -> String { "\(place(name))/\(Self.launchMark)\(app)" }

    private func ready(_ name: String, _ version: String) -> String { "\(place(name))/.ready-\(version)" }

    func failures(_ name: String, _ version: String) -> String { "\(place(name))/.failures-\(version)" }

    private func failureCount(_ name: String, _ version: String) -> Int {
        guard let text = try? File.readString(failures(name, version), limit: 16) else { return 0 }
        return text.split(separator: "\n").first.flatMap { Int($0) } ?? 0
    }

    /// Records from which version an app is launched, because an install must not remove that version.
    public func launches(_ name: String, _ version: String, app: String, verified: String = "") throws(BundleFault) {
        do throws(Errno) {
            let (path, text) = (mark(name, app: app), Array("\(version) \(verified)\n".utf8))
            if (try? File.read(path, limit: 256)) == text { return }
            try File.replace(path, text, draft: "\(place(name))/.draft-\(app)")
        } catch {
            throw BundleFault("\(mark(name, app: app)) cannot be written", error)
        }
    }

    /// The version that an app was last launched from; nil if it was removed.
    public func launchedVersion(_ name: String, app: String) -> (version: String, verified: String)? {
        guard let text = try? File.readString(mark(name, app: app), limit: 256),
            case let words = text.split(whereSeparator: { $0 == " " || $0 == "\n" }).map(String.init),
            let version = words.first, (try? BundleWord.checkVersion(version)) != nil,
            (try? File.kind(place(name, version))) == .directory
        else { return nil }
        return (version, words.count > 1 ? words[1] : "")
    }

    /// Whether a version is on trial: no launch of it has succeeded yet, and a previous version could be put back.
    public func isOnTrial(_ name: String, _ version: String) -> Bool {
        current(name) == version && previous(name) != nil && !File.exists(ready(name, version))
    }

    /// The version that failed and was replaced by its predecessor; nil if the current version did not replace a failed
    /// version.
    public func putBack(_ name: String) -> String? {
        previous(name).flatMap { failureCount(name, $0) >= Self.tries ? $0 : nil }
    }

    /// Records that a launch of a version has succeeded.
    public func cameUp(_ name: String, _ version: String) throws(BundleFault) {
        guard (try? File.kind(place(name, version))) == .directory else { return }
        do throws(Errno) {
            if !File.exists(ready(name, version)) { try File.write(ready(name, version), []) }
            if File.exists(failures(name, version)) { try File.remove(failures(name, version)) }
        } catch {
            throw BundleFault("\(ready(name, version)) cannot be written", error)
        }
    }

    /// Counts a failed launch of a version that is on trial. After ``tries`` of them, puts the previous version back.
    ///
    /// - Returns: the version that is current instead; nil if the current version stays.
    public func failed(_ name: String, _ version: String) throws(BundleFault) -> String? {
        let held = try lock(name)
        defer { withExtendedLifetime(held) {} }
        // An earlier call put the previous version back, but the reply did not reach torpord.
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
