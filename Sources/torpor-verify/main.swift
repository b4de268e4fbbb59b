// SPDX-License-Identifier: Apache-2.0

import BundleSeals
import Bundles
import Linux
import WireText

// Compares an installed bundle with what was signed. torpord starts it before each launch of an app of the bundle: a
// process of its own, since it parses what strangers have written.
//
// Exit status: 0 and one line (`kernel` or `launch`) if nothing was changed; 1 and a sentence on standard error; 2 for
// wrong arguments.

func fail(_ sentence: String, _ code: Int32) -> Never {
    ThisProcess.complain(sentence)
    ThisProcess.exit(code)
}

/// The cache of a version's digests stands beside it.
func cachePath(_ folder: String, _ version: String) -> String { "\(folder)/.\(version).verified" }

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count == 3, (try? BundleWord.checkVersion(arguments[1])) != nil else {
    fail("usage: torpor-verify BUNDLE-FOLDER VERSION KEYS-FOLDER", 2)
}
let (folder, version) = (arguments[0], arguments[1])
let path = "\(folder)/\(version)"
// Whatever a manifest does to its reader, it reaches only its own bundle. Kernels without Landlock go without.
_ = try? Confinement.confine(readable: [arguments[2]], writable: [folder])
// The cache is believed: it must be this user's own.
let cache = cachePath(folder, version)
var known: [UInt8] = []
if let status = try? File.status(cache, followLinks: false), status.kind == .regular,
    status.uid == Users.effectiveUID, status.mode & 0o022 == 0
{
    known = (try? File.read(cache, limit: BundleLimit.manifest)) ?? []
}
do throws(BundleFault) {
    let (keys, _) = TrustedKey.all(in: arguments[2])
    let result = try BundleCheck.run(
        path,
        keys: keys,
        owner: Users.effectiveUID,
        cache: known,
        now: Clock.realtimeMicroseconds() * 1000
    )
    let text = result.cache.text
    // A disk that is full or read-only makes the next check slower, not wrong.
    if text != known { try? File.replace(cache, text, mode: 0o600, draft: "\(folder)/.draft-\(version)") }
    print(result.isByKernel ? "kernel" : "launch")
} catch {
    fail(error.description, 1)
}
