// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BundleSeals
import Bundles
import CommandLinePages
import Configuration
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct InstallVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install",
        abstract: "Installs a signed bundle, or another version of one.",
        discussion: """
            Checks the signature, every file, the app's configuration and what the bundle needs, then makes the version \
            the current one in one step; the version before it stays for torpor rollback. It launches nothing: an app \
            uses the bundle by bundle = "NAME" in its table, and a new version counts at the app's next launch after \
            torpor apply.
            """
    )
    .examples("torpor install notes-1.0.torpor --keys . --bundles test")

    @Argument(help: "A bundle’s file.", completion: .file(extensions: ["torpor"]))
    var file: String
    @Flag(help: "Install even if the version is lower than the installed one.")
    var force = false
    @OptionGroup var places: BundlePlaces
    @OptionGroup var options: OutputOptions

    func run() throws {
        let source = try BundleFiles.open(file)
        let keys = places.trusted()
        let done = try BundleFiles.complain(file) { () throws(BundleFault) in
            try places.store.install(source.read, keys: keys, force: force) { head throws(BundleFault) in
                let manifest = try BundleFiles.runnable(head.text, head.files)
                return (manifest.name, manifest.version)
            }
        }
        withExtendedLifetime(source) {}
        guard !options.json else {
            return Output.document([
                "name": .string(done.name), "version": .string(done.version), "before": .optional(done.before),
                "key": .string(done.signer.key.name), "changed": .bool(!done.wasThere),
                "verified": .string(done.isByKernel ? "by the kernel" : "at launch"),
            ])
        }
        guard !done.wasThere else { return Output.write("\(done.name) \(done.version) is installed already\n") }
        guard done.presence == .other else {
            return Output.write(
                "\(done.name) \(done.version) has another signature now, by \(done.signer.path) "
                    + "(\(Terminal.harmless(done.comment)))\n"
            )
        }
        let before = done.before.map { " in place of \($0)" } ?? ""
        Output.write(
            "\(done.name) \(done.version) is installed\(before), signed by \(done.signer.path) (\(Terminal.harmless(done.comment))); verified "
                + (done.isByKernel ? "by the kernel\n" : "at launch\n")
        )
        guard ThisProcess.isTerminal(1) else { return }
        Output.write(
            done.before == nil
                ? "an app uses it by bundle = \"\(done.name)\" in its table of torpor.toml\n"
                : "‘torpor apply’ makes it count at the next launch, ‘torpor apply --restart’ now\n"
        )
    }
}

struct RollbackVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rollback",
        abstract: "Makes the version before the installed one the current one.",
        discussion: """
            It counts at the app's next launch after torpor apply. A second rollback undoes the first. The version's files, \
            key and requirements are checked first, as an install does.
            """
    )
    .examples("torpor rollback notes --keys . --bundles test")

    @Argument(help: "The bundle's name.")
    var name: String
    @OptionGroup var places: BundlePlaces
    @OptionGroup var options: OutputOptions

    func run() throws {
        let version = try BundleFiles.complain { () throws(BundleFault) in
            try BundleWord.checkName(name)
            return try places.store.rollBack(name, keys: places.trusted()) { found throws(BundleFault) in
                _ = try BundleFiles.runnable(found.text, found.files)
            }
        }
        guard !options.json else {
            return Output.document(["name": .string(name), "version": .string(version)])
        }
        Output.write("\(name) \(version) is the current version again\n")
    }
}

struct UninstallVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "uninstall",
        abstract: "Removes all versions of a bundle.",
        discussion: """
            A running app of the bundle keeps running until it ends; remove its table from the configuration. The app's data \
            folders stay, unless --purge removes them first: for this torpord must run, and the apps of the bundle must not. \
            That cannot be undone.
            """
    )
    .examples("torpor uninstall notes --bundles test")

    @Argument(help: "The bundle's name.")
    var name: String
    @Flag(help: "Remove the data of the bundle’s apps too, which must not be running.")
    var purge = false
    @OptionGroup var places: BundlePlaces
    @OptionGroup var options: GlobalOptions

    func run() throws {
        try BundleFiles.complain { () throws(BundleFault) in
            try BundleWord.checkName(name)
            guard places.store.current(name) != nil else { throw BundleFault("there is no bundle \(name)") }
        }
        let purged = purge ? try purgeData() : []
        try BundleFiles.complain { () throws(BundleFault) in try places.store.uninstall(name) }
        guard !options.json else { return Output.document(["name": .string(name), "purged": .strings(purged)]) }
        for app in purged { Output.write("the data of \(app) is removed\n") }
        Output.write("\(name) is removed\n")
    }

    /// Removes the data of the bundle's apps. If any of them is running, fails and removes nothing.
    private func purgeData() throws -> [String] {
        let manager = try Manager(options)
        var apps: [AppStatus] = []
        for app in try manager.names(of: []).names {
            let reply = try manager.call(.status(app: app))
            let status = try Manager.read { () throws(FieldError) in try AppStatus(json: reply["status"] ?? .null) }
            if let bundle = status.bundle, bundle == name || bundle.hasPrefix(name + " ") { apps.append(status) }
        }
        if let running = apps.first(where: { $0.summary.state != "not-running" || $0.summary.transition != nil }) {
            let app = running.summary.name
            throw Failure(
                status: .failed,
                message: "\(app) is running, and nothing was removed: stop it first (‘torpor stop \(app)’)"
            )
        }
        // Only apps that were launched before have data folders.
        let data = try manager.call(.data(apps: []))["data"]?.arrayValue ?? []
        let filled = Set(data.compactMap { $0["app"]?.stringValue })
        var purged: [String] = []
        for app in apps where filled.contains(app.summary.name) {
            let reply = try manager.call(.purgeData(PurgeDataRequest(app: app.summary.name, folders: [])))
            if let message = reply["message"]?.stringValue {
                throw Failure(status: .failed, message: "\(app.summary.name): \(message)")
            }
            purged.append(app.summary.name)
        }
        return purged
    }
}
