// SPDX-License-Identifier: Apache-2.0

import BundleSeals
import Bundles
import DaemonHarness
import Foundation
import Linux
import Testing

/// A folder with an app, a key that is trusted, and a place for bundles.
struct Workshop {
    let folder: String
    let environment: [String: String]

    static let program = "#!/bin/sh\nexec sleep 1000\n"

    var keys: String { folder + "/keys" }
    var store: BundleStore { BundleStore(folder + "/bundles") }
    var trusted: [TrustedKey] { TrustedKey.all(in: keys).keys }

    static func with(_ body: (Workshop) throws -> Void) throws {
        let folder = try Daemon.makeFolder()
        defer { try? File.removeTree(folder) }
        let shop = Workshop(folder: folder, environment: ["HOME": folder])
        try File.makeDirectories(folder + "/keys")
        try shop.run("bundle", "keygen", folder + "/one")
        try shop.trust("one")
        try shop.write("1.0")
        try body(shop)
    }

    func trust(_ key: String) throws {
        try File.write("\(keys)/\(key).pub", try File.read("\(folder)/\(key).pub"))
    }

    /// Writes the app's folder.
    func write(_ version: String, more: [String: String] = [:]) throws {
        try? File.removeTree(folder + "/app")
        try File.makeDirectories(folder + "/app/bin")
        try File.makeDirectories(folder + "/app/share/empty")
        let manifest = "name = \"notes\"\nversion = \"\(version)\"\n[app]\nexec = [\"bin/app\"]\n"
        var files = ["manifest.toml": manifest, "bin/app": Self.program, "share/data": version, "a": ""]
        files.merge(more) { $1 }
        for (name, text) in files {
            let path = folder + "/app/" + name
            try File.makeDirectories(File.parent(of: path) ?? "")
            try File.write(path, text)
        }
        try File.setMode(folder + "/app/bin/app", 0o755)
        try File.link(folder + "/app/run", to: "bin/app")
    }

    @discardableResult
    func run(
        _ words: String...,
        expecting code: Int32 = 0,
        at location: SourceLocation = #_sourceLocation
    ) throws -> String {
        let (status, output) = try Spawn.run([Built.path("torpor")] + words, environment: environment)
        #expect(status == code, "\(words): \(output)", sourceLocation: location)
        return output
    }

    /// Builds and signs the app's folder.
    func build(_ version: String, key: String = "one", more: [String: String] = [:]) throws -> String {
        try write(version, more: more)
        let file = "\(folder)/notes-\(version).torpor"
        try run("bundle", "build", folder + "/app", "--output", file)
        try run("bundle", "sign", file, "--key", "\(folder)/\(key).key")
        return file
    }

    var places: [String] { ["--bundles", folder + "/bundles", "--keys", keys] }

    @discardableResult
    func install(
        _ file: String,
        _ more: String...,
        expecting code: Int32 = 0,
        at location: SourceLocation = #_sourceLocation
    ) throws -> String {
        let words = [Built.path("torpor"), "install", file] + places + more
        let (status, output) = try Spawn.run(words, environment: environment)
        #expect(status == code, "\(words): \(output)", sourceLocation: location)
        return output
    }
}
