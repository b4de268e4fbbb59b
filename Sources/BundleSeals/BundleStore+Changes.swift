// SPDX-License-Identifier: Apache-2.0

public import Bundles
import Linux
import WireText

/// Changes the installed versions: replaces a signature, goes back to the previous version, or removes a bundle.
extension BundleStore {
    func signature(of name: String, _ version: String) throws(BundleFault) -> [UInt8] {
        try kernel("the signature of \(name) \(version), which is installed, cannot be read") { () throws(Errno) in
            try File.read(place(name, version) + "/manifest.toml.minisig", limit: BundleLimit.signature)
        }
    }

    /// Replaces a version's signature by another signature of the same manifest, atomically.
    func sign(_ name: String, _ version: String, _ signature: [UInt8]) throws(BundleFault) {
        try kernel("the signature of \(name) \(version) cannot be replaced") { () throws(Errno) in
            // Write the draft beside the version's folder: in the folder itself, a further file would count as a change
            // of the bundle.
            let (path, draft) = (place(name, version), "\(place(name))/.draft-signature")
            let file = try File.open(draft, [.write, .create, .truncate, .noFollow], mode: 0o600)
            try Descriptor.writeAll(file.raw, signature)
            try File.setMode(descriptor: file.raw, 0o644)
            try File.synchroniseAll(file.raw)
            try File.rename(draft, path + "/manifest.toml.minisig")
            try File.synchroniseFolder(path)
        }
    }

    /// Exchanges the current and the previous version, if the previous version can run on this machine.
    ///
    /// - Parameters:
    ///   - keys: the keys whose bundles may run.
    ///   - inspect: reads what the manifest's author wrote, and throws if this machine lacks what the bundle needs.
    /// - Returns: the version that is current now.
    public func rollBack(
        _ name: String,
        keys: [TrustedKey],
        inspect: (BundleCheck.Result) throws(BundleFault) -> Void = { _ in }
    ) throws(BundleFault) -> String {
        guard current(name) != nil else { throw BundleFault("there is no bundle \(name)") }
        let held = try lock(name)
        defer { withExtendedLifetime(held) {} }
        guard let now = current(name) else { throw BundleFault("there is no bundle \(name)") }
        guard let before = previous(name) else {
            throw BundleFault("\(name) has no version before \(now)")
        }
        do throws(BundleFault) { try inspect(try check(name, before, keys: keys)) } catch {
            throw BundleFault("\(name) \(before) cannot run here, and \(now) stays the current version: \(error)")
        }
        // A user who goes back to a version on purpose wants it to be tried, even if it failed before.
        try? File.remove(failures(name, before))
        try exchange(name, now, before)
        return before
    }

    func exchange(_ name: String, _ now: String, _ before: String) throws(BundleFault) {
        do throws(Errno) {
            try File.exchange("\(place(name))/current", "\(place(name))/previous")
            try File.synchroniseFolder(place(name))
        } catch {
            // The filesystem cannot exchange two names in one step.
            try point("current", of: name, to: before)
            try point("previous", of: name, to: now)
        }
    }

    /// Removes all versions of a bundle.
    public func uninstall(_ name: String) throws(BundleFault) {
        guard current(name) != nil else { throw BundleFault("there is no bundle \(name)") }
        let held = try lock(name)
        defer { withExtendedLifetime(held) {} }
        try kernel("the bundle \(name) cannot be removed") { () throws(Errno) in
            // Rename the folder first: if the removal is interrupted, the next install or the next start of torpord
            // completes it.
            let removed = "\(folder)/\(BundleWord.removedMark)\(name)"
            try File.removeTree(removed)
            try File.rename(place(name), removed)
            try File.synchroniseFolder(folder)
            try File.removeTree(removed)
        }
    }

    /// Removes what is left of bundles whose uninstall was interrupted.
    public func sweepRemoved() {
        for entry in (try? File.list(folder)) ?? [] where entry.hasPrefix(BundleWord.removedMark) {
            try? File.removeTree("\(folder)/\(entry)")
        }
    }
}
