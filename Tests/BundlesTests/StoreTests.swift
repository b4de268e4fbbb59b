// SPDX-License-Identifier: Apache-2.0

import BundleSeals
import Bundles
import DaemonHarness
import Foundation
import Linux
import Testing

@Suite("Bundles: built, signed, installed") struct StoreTests {
    @Test("A bundle is built, signed, verified, installed, rolled back and uninstalled by the commands")
    func commands() throws {
        try Workshop.with { shop in
            let one = try shop.build("1.0")
            let bytes = try File.read(one, limit: 1 << 20)
            #expect(
                try File.read(try shop.build("1.0"), limit: 1 << 20) == bytes,
                "it is the same when it is made again"
            )
            #expect(try shop.run("bundle", "verify", one, "--keys", shop.keys).contains("notes 1.0 is what"))
            #expect(
                try shop.install(one).contains("notes 1.0 is installed, signed by \(shop.keys)/one.pub (notes 1.0)")
            )
            #expect(try shop.install(one).contains("already"))
            let place = shop.store.place("notes", "1.0")
            #expect(try File.readString(place + "/bin/app") == Workshop.program)
            #expect(try File.status(place + "/bin/app").mode == 0o755)
            #expect(try File.readLink(place + "/run") == "bin/app")
            #expect(!File.exists(place + "/share/empty"))
            #expect(try shop.store.check("notes", "1.0", keys: shop.trusted).files.entries.count == 4)

            let two = try shop.build("2.0")
            #expect(try shop.install(two).contains("in place of 1.0"))
            #expect(shop.store.current("notes") == "2.0")
            #expect(shop.store.previous("notes") == "1.0")
            #expect(try shop.install(one, expecting: 1).contains("--force"))
            #expect(try shop.run(["rollback", "notes"] + shop.places).contains("notes 1.0"))
            #expect(shop.store.current("notes") == "1.0")
            try shop.run(["rollback", "notes"] + shop.places)
            #expect(shop.store.current("notes") == "2.0")
            #expect(try shop.install(one, "--force").contains("in place of 2.0"))
            // One previous version is kept.
            try shop.install(try shop.build("3.0"))
            #expect(
                try File.list(shop.store.place("notes")).sorted() == [".lock", "1.0", "3.0", "current", "previous"]
            )
            #expect(try shop.run(["bundle", "list"] + shop.places).contains("notes"))
            try shop.run(["uninstall", "notes"] + shop.places)
            #expect(try File.list(shop.folder + "/bundles").isEmpty)
            #expect(try shop.run(["rollback", "notes"] + shop.places, expecting: 1).contains("no bundle notes"))
        }
    }

    @Test("One version has one content")
    func sameVersion() throws {
        try Workshop.with { shop in
            try shop.install(try shop.build("1.0"))
            let other = try shop.build("1.0", more: ["a": "other"])
            #expect(try shop.install(other, "--force", expecting: 1).contains("another version"))
            // Of the version before, too.
            try shop.install(try shop.build("2.0"))
            #expect(try shop.install(other, "--force", expecting: 1).contains("another version"))
            #expect(shop.store.current("notes") == "2.0" && shop.store.previous("notes") == "1.0")
            // It comes back as it was, and what was changed in it is mended.
            let data = shop.store.place("notes", "1.0") + "/share/data"
            try File.write(data, "changed")
            try shop.install(try shop.build("1.0"), "--force")
            #expect(shop.store.current("notes") == "1.0")
            #expect(try File.readString(data) == "1.0")
        }
    }

    @Test("A version that an app runs from stays, however many are installed after it")
    func inUse() throws {
        try Workshop.with { shop in
            try shop.install(try shop.build("1.0"))
            try shop.store.launches("notes", "1.0", app: "web", verified: "launch")
            try shop.install(try shop.build("2.0"))
            try shop.install(try shop.build("3.0"))
            try shop.install(try shop.build("4.0"))
            #expect(shop.store.launchedVersion("notes", app: "web")?.version == "1.0")
            #expect(throws: Never.self) { try shop.store.check("notes", "1.0", keys: shop.trusted) }
            #expect(!File.exists(shop.store.place("notes", "2.0")))
            // Until the app is launched from another one.
            try shop.store.launches("notes", "4.0", app: "web")
            try shop.install(try shop.build("5.0"))
            #expect(!File.exists(shop.store.place("notes", "1.0")))
            #expect(File.exists(shop.store.place("notes", "4.0")))
        }
    }

    @Test("A version that fails twice before it came up is replaced by the one before")
    func trials() throws {
        try Workshop.with { shop in
            let store = shop.store
            try shop.install(try shop.build("1.0"))
            // There is none before the first.
            #expect(!store.isOnTrial("notes", "1.0"))
            #expect(try store.failed("notes", "1.0") == nil)
            try shop.install(try shop.build("2.0"))
            #expect(store.isOnTrial("notes", "2.0"))
            #expect(try store.failed("notes", "2.0") == nil)
            #expect(store.current("notes") == "2.0" && store.putBack("notes") == nil)
            #expect(try store.failed("notes", "2.0") == "1.0")
            #expect(store.current("notes") == "1.0" && store.previous("notes") == "2.0")
            #expect(store.putBack("notes") == "2.0")
            #expect(try shop.run(["bundle", "list"] + shop.places).contains("2.0 (failed)"))
            // It is told again to whoever asks again.
            #expect(try store.failed("notes", "2.0") == "1.0")
            // By hand it gets two more tries, and one that comes up is not counted any more.
            try shop.run(["rollback", "notes"] + shop.places)
            #expect(store.current("notes") == "2.0" && store.isOnTrial("notes", "2.0"))
            #expect(try store.failed("notes", "2.0") == nil)
            try store.cameUp("notes", "2.0")
            #expect(!store.isOnTrial("notes", "2.0"))
            for _ in 0..<3 { #expect(try store.failed("notes", "2.0") == nil) }
            #expect(store.current("notes") == "2.0")
        }
    }

    @Test("Keys and folders that others can write to do not count")
    func writable() throws {
        try Workshop.with { shop in
            let file = try shop.build("1.0")
            try File.setMode(shop.keys + "/one.pub", 0o666)
            #expect(try shop.install(file, expecting: 1).contains("chmod go-w"))
            try File.setMode(shop.keys + "/one.pub", 0o644)
            try File.setMode(shop.keys, 0o777)
            #expect(try shop.install(file, expecting: 1).contains("chmod go-w"))
            try File.setMode(shop.keys, 0o755)
            if Users.isRoot {
                try File.setOwner(shop.keys + "/one.pub", uid: 1, gid: nil)
                #expect(try shop.install(file, expecting: 1).contains("another user"))
                try File.setOwner(shop.keys + "/one.pub", uid: 0, gid: nil)
            }
            try File.makeDirectories(shop.folder + "/bundles")
            try File.setMode(shop.folder + "/bundles", 0o777)
            #expect(try shop.install(file, expecting: 1).contains("written to by others"))
            try File.setMode(shop.folder + "/bundles", 0o755)
            try shop.install(file)
            try File.setMode(shop.folder + "/bundles/notes", 0o777)
            #expect(try shop.run(["bundle", "verify", "notes"] + shop.places, expecting: 1).contains("written to"))
            try File.setMode(shop.folder + "/bundles/notes", 0o755)
            try shop.run(["bundle", "verify", "notes"] + shop.places)
        }
    }

    @Test("A signed bundle in the place of another version is not that version")
    func exchanged() throws {
        try Workshop.with { shop in
            try shop.install(try shop.build("1.0"))
            try shop.install(try shop.build("2.0"))
            let place = { shop.store.place("notes", $0) }
            try File.removeTree(place("2.0"))
            try File.rename(place("1.0"), place("2.0"))
            #expect(try shop.run(["bundle", "verify", "notes"] + shop.places, expecting: 1).contains("notes 1.0"))
        }
    }

    @Test("Folders above the bundles can be gone through by the users of apps, whatever the umask is")
    func umask() throws {
        try Workshop.with { shop in
            let file = try shop.build("1.0")
            let bundles = shop.folder + "/state/torpor/bundles"
            let words = [Built.path("torpor"), "install", file, "--keys", shop.keys, "--bundles", bundles]
            let line = "umask 077; exec " + words.joined(separator: " ")
            let (code, output) = try Spawn.run(["/bin/sh", "-c", line], environment: shop.environment)
            #expect(code == 0, "\(output)")
            for path in ["/state", "/state/torpor", "/state/torpor/bundles", "/state/torpor/bundles/notes/1.0/bin"] {
                #expect(try File.status(shop.folder + path).mode == 0o755, "\(path)")
            }
        }
    }

    @Test("What Python compiled does not become part of a bundle")
    func compiled() throws {
        try Workshop.with { shop in
            let file = try shop.build("1.0", more: ["lib/__pycache__/a.pyc": "x", "lib/a.py": ""])
            try shop.install(file)
            let place = shop.store.place("notes", "1.0")
            #expect(try File.list(place + "/lib") == ["a.py"])
        }
    }

    @Test("Only a trusted key may sign, and for a later version only that of the installed one, or a newer key")
    func keys() throws {
        try Workshop.with { shop in
            try shop.run("bundle", "keygen", shop.folder + "/two")
            try shop.run("bundle", "keygen", shop.folder + "/old")
            #expect(try shop.install(try shop.build("1.0", key: "two"), expecting: 1).contains("not trusted here"))
            #expect(shop.store.names.isEmpty)
            try shop.trust("old")
            try shop.install(try shop.build("1.0"))
            #expect(try shop.install(try shop.build("1.1", key: "old"), expecting: 1).contains("trusted before that"))
            // A key with the number of the installed one is another key.
            let one = try MinisignKey(text: try File.read("\(shop.folder)/one.pub"))
            let old = try MinisignSecret(text: try File.read("\(shop.folder)/old.key"))
            let forged = MinisignSecret.text(sealed: one.id + old.sealed[8...])
            try File.write("\(shop.folder)/forged.key", forged)
            let pub = MinisignKey(id: one.id, key: try MinisignKey(text: try File.read("\(shop.folder)/old.pub")).key)
            try File.write("\(shop.keys)/old.pub", pub.text)
            // It was trusted before the installed version, as far as its file says.
            try shop.install(try shop.build("1.0.1"))
            #expect(
                try shop.install(try shop.build("1.1", key: "forged"), expecting: 1).contains("trusted before that")
            )
            try shop.trust("two")
            try shop.install(try shop.build("1.2", key: "two"))
            // A key that is no longer trusted verifies nothing.
            try File.remove("\(shop.keys)/two.pub")
            #expect(throws: BundleFault.self) { try shop.store.check("notes", "1.2", keys: shop.trusted) }
        }
    }

    @Test("The same version may be signed by another key, if that key is trusted since it was installed")
    func signedOtherwise() throws {
        try Workshop.with { shop in
            for key in ["two", "old"] { try shop.run("bundle", "keygen", shop.folder + "/" + key) }
            try shop.trust("old")
            try shop.install(try shop.build("1.0"))
            let path = shop.store.place("notes", "1.0") + "/manifest.toml.minisig"
            let first = try File.read(path)
            #expect(try shop.install(try shop.build("1.0", key: "old"), expecting: 1).contains("trusted before that"))
            #expect(try File.read(path) == first)
            // The maker's key is replaced: all that is installed would no longer run.
            try shop.trust("two")
            try File.remove(shop.keys + "/one.pub")
            #expect(throws: BundleFault.self) { try shop.store.check("notes", "1.0", keys: shop.trusted) }
            let file = try shop.build("1.0", key: "two")
            let words = [Built.path("torpor"), "install", file] + shop.places
            let line = "umask 077; exec " + words.joined(separator: " ")
            let (code, output) = try Spawn.run(["/bin/sh", "-c", line], environment: shop.environment)
            #expect(code == 0 && output.contains("another signature now, by \(shop.keys)/two.pub"), "\(output)")
            #expect(try shop.store.check("notes", "1.0", keys: shop.trusted).signer.path == shop.keys + "/two.pub")
            #expect(try shop.install(file).contains("already"))
            // With other content it is another version, whoever signs.
            let other = try shop.build("1.0", key: "two", more: ["a": "other"])
            #expect(try shop.install(other, expecting: 1).contains("another version"))
            // The key that was there before this signature may not follow.
            #expect(try shop.install(try shop.build("1.0", key: "old"), expecting: 1).contains("trusted before that"))
            #expect(try File.list(shop.store.place("notes")).sorted() == [".lock", "1.0", "current"])
        }
    }

    @Test("A rollback goes to a version only if that can run here")
    func rollbackChecks() throws {
        try Workshop.with { shop in
            func refused(_ sentence: String, at location: SourceLocation = #_sourceLocation) throws {
                let said = try shop.run(["rollback", "notes"] + shop.places, expecting: 1, at: location)
                #expect(said.contains("notes 1.0 cannot run here"), "\(said)", sourceLocation: location)
                #expect(said.contains(sentence), "\(said)", sourceLocation: location)
                #expect(shop.store.current("notes") == "2.0", sourceLocation: location)
            }
            try shop.install(try shop.build("1.0"))
            try shop.run("bundle", "keygen", shop.folder + "/two")
            try shop.trust("two")
            try shop.install(try shop.build("2.0", key: "two"))
            try File.rename(shop.keys + "/one.pub", shop.folder + "/one.off")
            try refused("not trusted here")
            try File.rename(shop.folder + "/one.off", shop.keys + "/one.pub")
            let data = shop.store.place("notes", "1.0") + "/share/data"
            try File.write(data, "more than 1.0")
            try refused("share/data is not what was signed")
            try File.write(data, "1.0")
            try shop.run(["rollback", "notes"] + shop.places)
            #expect(shop.store.current("notes") == "1.0")
            // What a machine lacks: the processor of this one is another in the manifest of a bundle that was moved here.
            #expect(throws: BundleFault.self) {
                try shop.store.rollBack("notes", keys: shop.trusted) { _ throws(BundleFault) in
                    throw BundleFault("this machine lacks swap")
                }
            }
            #expect(shop.store.current("notes") == "1.0")
        }
    }

    @Test("What an uninstall that was killed has left is no bundle, and is removed by the next install")
    func leftByUninstall() throws {
        try Workshop.with { shop in
            let file = try shop.build("1.0")
            try shop.install(file)
            let left = shop.folder + "/bundles/.removed-notes"
            try File.rename(shop.store.place("notes"), left)
            #expect(shop.store.names.isEmpty && shop.store.current("notes") == nil)
            try shop.install(file)
            #expect(!File.exists(left) && shop.store.current("notes") == "1.0")
            // One that was killed, and then another.
            try File.makeDirectories(left + "/1.0")
            try shop.run(["uninstall", "notes"] + shop.places)
            #expect(try File.list(shop.folder + "/bundles").isEmpty)
        }
    }

    @Test(
        "A manifest is checked as the machine's own configuration would be",
        arguments: [
            ("[app]\nexec = [\"bin/app\"]\nuser = \"root\"", "machine's owner"),
            ("[app]\nexec = [\"bin/app\"]\nexek = 1", "no such key"), ("[app]\n", "exec is missing"),
            ("[app]\nexec = [\"bin/app\"]\nready = { port = 70000 }", "ready"),
            ("[app]\nexec = [\"bin/app\"]\nhealth = 5", "health"), ("", "app"), ("[app", "manifest"),
            ("more = 1\n[app]\nexec = [\"bin/app\"]", "no such key"),
            ("needs = [\"kernel >= 99\"]\n[app]\nexec = [\"bin/app\"]", "Linux 99"),
            ("needs = [\"luck\"]\n[app]\nexec = [\"bin/app\"]", "luck"),
        ]
    )
    func manifests(text: String, reason: String) throws {
        try Workshop.with { shop in
            try shop.write("1.0")
            try File.write(shop.folder + "/app/manifest.toml", "name = \"notes\"\nversion = \"1.0\"\n" + text)
            let file = shop.folder + "/x.torpor"
            let words = ["bundle", "build", shop.folder + "/app", "--output", file]
            if text.contains("needs") {
                try shop.run(words)
                try shop.run("bundle", "sign", file, "--key", shop.folder + "/one.key")
                #expect(try shop.install(file, expecting: 1).contains(reason))
            } else {
                #expect(try shop.run(words, expecting: 1).contains(reason))
                #expect(!File.exists(file) && !File.exists(file + ".part"))
            }
        }
    }

    @Test("Whatever was changed in an installed bundle is found, and named")
    func changes() throws {
        try Workshop.with { shop in
            try shop.install(try shop.build("1.0"))
            let place = shop.store.place("notes", "1.0")
            func check(
                _ expected: String?,
                _ change: () throws -> Void,
                at location: SourceLocation = #_sourceLocation
            ) throws {
                try change()
                do throws(BundleFault) {
                    _ = try shop.store.check("notes", "1.0", keys: shop.trusted)
                    #expect(expected == nil, sourceLocation: location)
                } catch {
                    #expect(error.description == expected, sourceLocation: location)
                }
            }
            let data = place + "/share/data"
            try check(nil) {}
            try check("share/data is not what was signed") { try File.write(data, "1.1") }
            try check("share/data is not what was signed") { try File.write(data, "1.0 ") }
            try check(nil) { try File.write(data, "1.0") }
            try check("share/more is not in the manifest") { try File.write(place + "/share/more", "") }
            try File.remove(place + "/share/more")
            try check("more is not in the manifest") { try File.makeDirectory(place + "/more") }
            try File.removeDirectory(place + "/more")
            try check("share/data is missing") { try File.rename(data, shop.folder + "/data") }
            try check("share/data is of another kind than what was signed") {
                try File.link(data, to: shop.folder + "/data")
            }
            try File.remove(data)
            try File.rename(shop.folder + "/data", data)
            try check("share/data has the mode 600, and not 644") { try File.setMode(data, 0o600) }
            try check("share/data has the mode 4644, and not 644") { try File.setMode(data, 0o4644) }
            try check("share has the mode 777, and not 755") {
                try File.setMode(data, 0o644)
                try File.setMode(place + "/share", 0o777)
            }
            try File.setMode(place + "/share", 0o755)
            try check("share/data has another hard link") {
                #expect(link(data, shop.folder + "/second") == 0)
            }
            try File.remove(shop.folder + "/second")
            try check("run is not what was signed") {
                try File.remove(place + "/run")
                try File.link(place + "/run", to: "bin/sh")
            }
            try File.remove(place + "/run")
            try File.link(place + "/run", to: "bin/app")
            try check(nil) {}
            if Users.isRoot {
                try check("share/data belongs to another user (1)") { try File.setOwner(data, uid: 1, gid: nil) }
                try File.setOwner(data, uid: 0, gid: nil)
            }
            try check("manifest.toml is not what was signed") {
                let manifest = try File.readString(place + "/manifest.toml")
                try File.write(place + "/manifest.toml", manifest + "\"b\" = { link = \"a\" }\n")
            }
            try check("manifest.toml is missing") { try File.remove(place + "/manifest.toml") }
        }
    }

    @Test("A file is read again when it changed, even if size and time of change are as before")
    func cache() throws {
        try Workshop.with { shop in
            try shop.install(try shop.build("1.0"))
            let (place, owner) = (shop.store.place("notes", "1.0"), shop.store.owner)
            func run(_ cache: [UInt8]?) throws(BundleFault) -> BundleCheck.Result {
                // Ten seconds later than it is: what was installed just now is old enough to be remembered.
                let now = (Clock.realtimeMicroseconds() + 10_000_000) * 1000
                return try BundleCheck.run(place, keys: shop.trusted, owner: owner, cache: cache, now: now)
            }
            let first = try run(nil)
            // With fs-verity nothing is read.
            guard !first.isByKernel else { return }
            #expect(first.bytesRead > 0)
            let second = try run(first.cache.text)
            #expect(second.bytesRead == 0)
            #expect(second.cache == first.cache)
            let data = place + "/share/data"
            let time = try File.status(data).modifiedNanoseconds
            try File.write(data, "9.9")
            var times = [timespec(), timespec()]
            for index in 0..<2 {
                times[index] = timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
            }
            #expect(utimensat(AT_FDCWD, data, times, 0) == 0)
            #expect(throws: BundleFault("share/data is not what was signed")) { try run(first.cache.text) }
            #expect(throws: BundleFault.self) { try run(Array("damaged".utf8)) }
            // A file that changed just now is not remembered.
            try File.write(data, "1.0")
            let fresh = try BundleCheck.run(
                place,
                keys: shop.trusted,
                owner: owner,
                cache: nil,
                now: Clock.realtimeMicroseconds() * 1000
            )
            #expect(DigestCacheText.count(fresh.cache.text) < DigestCacheText.count(first.cache.text))
        }
    }

    private enum DigestCacheText {
        static func count(_ text: [UInt8]) -> Int { text.count { $0 == UInt8(ascii: "\n") } }
    }

    @Test("Archives that strangers made to do harm are refused, each for its reason, and leave nothing")
    func hostile() throws {
        try Workshop.with { shop in
            let good = try shop.build("1.0")
            let folder = shop.folder + "/hostile"
            try File.makeDirectories(folder)
            let script = Sources.root + "/Tests/BundlesTests/hostile.py"
            let (code, output) = try Spawn.run(["/usr/bin/python3", script, good, folder])
            try #require(code == 0, "\(output)")
            let lines = output.split(separator: "\n").map {
                $0.split(separator: "\t", omittingEmptySubsequences: false)
            }
            #expect(lines.count >= 40)
            let key = try SigningKey(try MinisignSecret(text: try File.read(shop.folder + "/one.key"))) { [] }
            for line in lines {
                let (name, expected) = (String(line[0]), String(line[1]))
                let file = try File.open("\(folder)/\(name)")
                func next(_ most: Int) throws(BundleFault) -> [UInt8] {
                    do throws(Errno) { return try Descriptor.read(file.raw, maximum: most) ?? [] } catch {
                        throw BundleFault("\(error)")
                    }
                }
                // Signed: what is refused is refused although somebody trusted made it.
                var refusal = ""
                do throws(BundleFault) {
                    var archive = try BundleArchive(next)
                    let signature = key.sign(archive.head.manifest, comment: "c")
                    let signed = "\(folder)/\(name).signed"
                    let output: Descriptor
                    do throws(Errno) { output = try File.open(signed, [.write, .create]) } catch {
                        throw BundleFault("\(error)")
                    }
                    try BundleBuilder.copy(&archive, signature: signature, to: output.raw)
                    refusal = (try? shop.install(signed, expecting: 1)) ?? ""
                } catch {
                    refusal = error.description
                }
                #expect(!refusal.isEmpty && (expected.isEmpty || refusal.contains(expected)), "\(name): \(refusal)")
                let direct = try shop.install("\(folder)/\(name)", expecting: 1)
                #expect(!direct.contains("is installed"), "\(name)")
            }
            #expect(shop.store.names.isEmpty)
            #expect(((try? File.list(shop.folder + "/bundles/notes")) ?? []).filter { $0 != ".lock" }.isEmpty)
            #expect(!File.exists(shop.folder + "/x"))
        }
    }
}

extension Workshop {
    @discardableResult
    func run(
        _ words: [String],
        expecting code: Int32 = 0,
        at location: SourceLocation = #_sourceLocation
    ) throws -> String {
        let (status, output) = try Spawn.run([Built.path("torpor")] + words, environment: environment)
        #expect(status == code, "\(words): \(output)", sourceLocation: location)
        return output
    }
}
