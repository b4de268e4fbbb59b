// SPDX-License-Identifier: Apache-2.0

import BundleSeals
import Bundles
import Linux
import WireText

// Compares an installed bundle with its signed manifest. torpord runs torpor-verify before each launch of an app of a
// bundle: as a process of its own, since it parses untrusted input.
//
// torpor-verify BUNDLE-FOLDER VERSION KEYS-FOLDER APP
//   If nothing was changed, exits with 0, and prints a line of words, then the author's part of the manifest. The
//   words: `kernel` or `launch` for how files are verified; `trial` if no launch of the version has succeeded;
//   `instead-of=VERSION` if this version replaces one that failed.
// torpor-verify --ready BUNDLE-FOLDER VERSION
//   Records that a launch of the version has succeeded.
// torpor-verify --failed BUNDLE-FOLDER VERSION
//   Records that a launch failed. Prints the current version if it replaces the failed one.
//
// Other exit statuses: 1 if the bundle must not run; 3 if the check could not be made (both print a sentence on
// standard error); 2 for wrong arguments.

func fail(_ sentence: String, _ code: Int32) -> Never {
    ThisProcess.complain(sentence)
    ThisProcess.exit(code)
}

var arguments = Array(CommandLine.arguments.dropFirst())
let order = arguments.first.flatMap { $0.hasPrefix("--") ? $0 : nil }
if order != nil { arguments.removeFirst() }
guard arguments.count == (order == nil ? 4 : 2), [nil, "--ready", "--failed"].contains(order),
    let bundles = File.parent(of: arguments[0]), (try? BundleWord.checkVersion(arguments[1])) != nil
else {
    fail("usage: torpor-verify [--ready|--failed] BUNDLE-FOLDER VERSION [KEYS-FOLDER APP]", 2)
}
let (folder, version) = (arguments[0], arguments[1])
let name = String(folder.dropFirst(bundles.count + 1))
let store = BundleStore(bundles)

/// Reads the cache of a version's digests, a file beside the version. Its content is trusted, so it must belong to
/// this user.
func readCache(_ path: String) -> [UInt8] {
    guard let status = try? File.status(path, followLinks: false), status.kind == .regular,
        status.uid == Users.effectiveUID, status.mode & 0o022 == 0
    else { return [] }
    return (try? File.read(path, limit: BundleLimit.manifest)) ?? []
}

func verify(_ keyFolder: String, _ app: String) throws(BundleFault) {
    // If a crafted manifest takes control of this process, it reaches only its own bundle. Without Landlock in the
    // kernel, the check runs unconfined.
    _ = try? Confinement.confine(readable: [keyFolder], writable: [folder])
    guard File.exists(store.place(name, version)) else {
        throw BundleFault("it is no longer installed: ‘torpor apply’ takes the version that is")
    }
    try store.inspectFolders(of: name)
    let (keys, problems) = TrustedKey.all(in: keyFolder)
    // Record the launch before the check, so that no ‘torpor install’ removes the version during the check. If the disk
    // is full or read-only, the app is launched all the same.
    if store.launchedVersion(name, app: app)?.version != version { try? store.launches(name, version, app: app) }
    let cache = "\(folder)/.\(version).verified"
    let known = readCache(cache)
    let result: BundleCheck.Result
    do throws(BundleFault) {
        result = try BundleCheck.run(
            store.place(name, version),
            keys: keys,
            owner: store.owner,
            cache: known,
            now: Clock.realtimeMicroseconds() * 1000
        )
    } catch {
        guard keys.isEmpty, let problem = problems.first else { throw error }
        throw BundleFault("\(error) (\(problem))", isPassing: error.isPassing)
    }
    // If the cache cannot be stored, the next check is slower, but still right.
    let text = result.cache.text
    if text != known { try? File.replace(cache, text, mode: 0o600, draft: "\(folder)/.draft-\(version)") }
    let how = result.isByKernel ? "kernel" : "launch"
    try? store.launches(name, version, app: app, verified: how)
    var words = [how]
    if store.isOnTrial(name, version) { words.append("trial") }
    if let other = store.putBack(name), other != version { words.append("instead-of=\(other)") }
    do throws(Errno) {
        try Descriptor.writeAll(1, Array((words.joined(separator: " ") + "\n").utf8) + result.text)
    } catch {
        throw BundleFault("its manifest cannot be passed on: \(error)", isPassing: true)
    }
}

do throws(BundleFault) {
    switch order {
    case "--ready": try store.cameUp(name, version)
    case "--failed": if let other = try store.failed(name, version) { print(other) }
    default: try verify(arguments[2], arguments[3])
    }
} catch {
    fail(error.description, error.isPassing ? 3 : 1)
}
