// SPDX-License-Identifier: Apache-2.0

import BundleSeals
import Bundles
import Linux
import WireText

// Compares an installed bundle with what was signed. torpord starts it before each launch of an app of the bundle: a
// process of its own, since it parses what strangers have written.
//
// torpor-verify BUNDLE-FOLDER VERSION KEYS-FOLDER APP
//   Nothing was changed: exit status 0, a line of words (`kernel` or `launch`; `trial` for a version that has not come up
//   yet; `instead-of=VERSION` for one that was put back), then what the manifest's author wrote.
// torpor-verify --ready BUNDLE-FOLDER VERSION
//   The version has come up.
// torpor-verify --failed BUNDLE-FOLDER VERSION
//   A launch did not come up. Prints the version that was put back in its place, if it was.
//
// Exit status 1: the bundle must not run; 3: that could not be found out; both with a sentence on standard error. 2: wrong
// arguments.

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

/// The cache of a version's digests stands beside it. It is believed, so it must be this user's own.
func readCache(_ path: String) -> [UInt8] {
    guard let status = try? File.status(path, followLinks: false), status.kind == .regular,
        status.uid == Users.effectiveUID, status.mode & 0o022 == 0
    else { return [] }
    return (try? File.read(path, limit: BundleLimit.manifest)) ?? []
}

func verify(_ keyFolder: String, _ app: String) throws(BundleFault) {
    // Whatever a manifest does to its reader, it reaches only its own bundle. Kernels without Landlock go without.
    _ = try? Confinement.confine(readable: [keyFolder], writable: [folder])
    guard File.exists(store.place(name, version)) else {
        throw BundleFault("it is no longer installed: ‘torpor apply’ takes the version that is")
    }
    try store.inspectFolders(of: name)
    let (keys, problems) = TrustedKey.all(in: keyFolder)
    // Before the check: no install removes the version from now on. A disk that is full or read-only does not keep the app
    // from being launched.
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
    // Without it the next check is slower, not wrong.
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
