// SPDX-License-Identifier: Apache-2.0

import Linux
import Permissions
import WireText

/// Warnings about missing programs, scripts, folders and files that an app needs at its launch. They are never errors,
/// because a file may be created later, or the configuration may be for another machine.
struct NeededFiles {
    let app: AppSpecification
    let draft: AppDraft
    let system: ConfigurationSystem
    let inspection: ConfigurationSystem.Inspection
    /// The argument of `exec` about which ``MachineHints`` has warned already; nil if there is none.
    let misplaced: String?

    /// Creates the checks for an app. Nil if `system` does not inspect files.
    init?(_ app: AppSpecification, _ draft: AppDraft, _ system: ConfigurationSystem, misplaced: String?) {
        guard let inspection = system.inspection else { return nil }
        (self.app, self.draft, self.system, self.inspection) = (app, draft, system, inspection)
        self.misplaced = misplaced
    }

    /// How the warnings about missing programs and scripts begin.
    static let noProgram = "there is no program "
    static let noScript = "there is no script "

    func check() {
        if let directory = app.directory {
            switch find(directory) {
            case .nothing: draft.warning("directory", "there is no folder \(quoted(directory)) now")
            case .program, .file: draft.warning("directory", "\(quoted(directory)) is not a folder")
            case .folder, .unknown: break
            }
        }
        for file in app.environmentFiles where !file.isOptional && find(file.path) == .nothing {
            draft.warning(
                "environment_file",
                "there is no file \(quoted(file.path)) now, which the app needs: \"-\(file.path)\" makes it optional"
            )
        }
        if app.container == nil { check("exec", app.exec) }
        for volume in app.container?.volumes ?? [] {
            let fields = volume.split(separator: ":")
            guard fields.count > 1, fields[0].hasPrefix("/"), find(String(fields[0])) == .nothing else { continue }
            draft.warning(
                "container",
                "volumes: there is no \(quoted(String(fields[0]))) now, and podman starts nothing without it"
            )
        }
        for hook in app.beforeStart { check("before_start", hook.command) }
        for hook in app.afterStop { check("after_stop", hook.command) }
        for command in app.onFailure { check("on_failure", command.command) }
        if case .probe(let probe) = app.ready, case .command(let words) = probe.kind { check("ready", words) }
        if case .command(let words) = app.health?.probe.kind { check("health", words) }
        if case .command(let words) = app.snapshot?.source { check("snapshot", words) }
        check("cover", app.presentation.cover.command)
        for icon in [app.presentation.icon].compactMap(\.self) + app.presentation.icons.values.sorted() {
            check(icon: icon)
        }
        if !app.announcements.isEmpty, find("/usr/sbin/avahi-daemon") == .nothing {
            draft.warning("announce", "this machine has no avahi-daemon, which announces services: install it")
        }
        if app.sandbox.mode != nil, inspection.landlock == 0 {
            draft.warning(
                "sandbox",
                "the app is not launched, since \(KernelRelease.landlockObstacle), or remove sandbox"
            )
        }
        for limit in app.processLimits {
            guard let most = inspection.hardLimit(limit.resource), limit.hard > most else { continue }
            let wanted = limit.hard == .max ? "unlimited" : "\(limit.hard)"
            draft.warning(
                "limits",
                "\(limit.name): \(wanted) is above \(most), the hard limit here, so the app is not launched by a torpord "
                    + "without CAP_SYS_RESOURCE, such as that of a user: lower it, or raise Limit\(limit.name.uppercased())= "
                    + "of the service user@.service"
            )
        }
        if let language = app.presentation.language, SettingTemplate.names(in: language).isEmpty,
            !Placeholder.isForScene(language), inspection.hasLocale(language) == false
        {
            draft.warning(
                "language",
                "this machine has no locale \(quoted(language)) now, so programs speak English: ‘locale -a’ lists those that "
                    + "it has, and ‘dpkg-reconfigure locales’ or ‘localedef’ makes others"
            )
        }
    }

    /// Warns if an icon's file has a format that menus cannot show.
    private func check(icon path: String) {
        guard app.scenes == nil || !Placeholder.isForScene(path), [.file, .program].contains(find(path)),
            case .success(let bytes) = system.read(path), !Self.isPicture(bytes)
        else { return }
        draft.warning("icon", "\(quoted(path)) is neither SVG, PNG, WebP, JPEG nor GIF: nothing shows it")
    }

    /// The first bytes of a file in each of the formats PNG, JPEG and GIF.
    private static let beginnings: [[UInt8]] = [
        [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], [0xff, 0xd8, 0xff], Array("GIF8".utf8),
    ]

    /// Whether the bytes are the beginning of a picture in a format that `icon` supports.
    private static func isPicture(_ bytes: [UInt8]) -> Bool {
        if beginnings.contains(where: { bytes.starts(with: $0) }) { return true }
        if bytes.starts(with: "RIFF".utf8), bytes.dropFirst(8).starts(with: "WEBP".utf8) { return true }
        // In an SVG file, comments and a document type may come before the `svg` element.
        let head = String(wire: bytes.prefix(4096)).drop { $0.isWhitespace || $0 == "\u{feff}" }
        return head.hasPrefix("<svg")
            || ["<?xml", "<!--", "<!DOCTYPE"].contains { head.hasPrefix($0) } && head.contains("<svg")
    }

    private func check(_ key: String, _ words: [String]) {
        checkProgram(key, words)
        if let problem = problem(ofScriptIn: words) { draft.warning(key, problem) }
    }

    private func checkProgram(_ key: String, _ words: [String]) {
        guard let program = words.first, let problem = problem(program) else { return }
        var hint = ""
        if words.count == 1, program.utf8.contains(UInt8(ascii: " ")) {
            let array = Read.array(of: program)
            let isForShell = array.hasPrefix("[\"/bin/sh\"")
            hint = "; \(isForShell ? "have a shell run it" : "write each word as its own element"): \(array)"
        }
        draft.warning(key, problem + hint)
    }

    /// Inspects a path. If the path contains a scene's name, the result is `unknown`, because the scene does not exist
    /// yet.
    private func find(_ path: String) -> ConfigurationSystem.Inspection.Finding {
        app.scenes != nil && Placeholder.isForScene(path) ? .unknown : inspection.find(path)
    }

    private func problem(_ program: String) -> String? {
        program.contains("/") ? problem(at: program) : problem(onPath: program)
    }

    private func problem(at program: String) -> String? {
        // Without `directory`, the app begins in its user's home, if that exists.
        if !program.hasPrefix("/"), app.directory == nil, app.user != nil { return nil }
        let path = Path.join(app.directory ?? "/", program)
        switch find(path) {
        case .program: return problem(ofScript: path)
        case .unknown: return nil
        case .folder: return "\(quoted(path)) is a folder, not a program"
        case .file: return "\(quoted(path)) cannot be executed now: it needs chmod +x"
        case .nothing:
            let name = path.split(separator: "/").last.map(String.init) ?? path
            let folder = Path.folder(path)
            return "\(Self.noProgram)\(quoted(name)) in \(folder) now"
                // Allow only one edit: in a folder that may contain a thousand programs, a name two edits away is
                // probably not the program that was meant.
                + draft.hint(name, among: system.names(folder) ?? [], within: 1)
        }
    }

    private func problem(onPath program: String) -> String? {
        let path = app.environment["PATH"]
        // The files of `environment_file` may set PATH, but they are read only at the launch, so PATH is unknown here.
        if path == nil, !app.environmentFiles.isEmpty { return nil }
        let searched = path ?? inspection.searchPath
        for folder in searched.split(separator: ":") {
            switch find(folder + "/" + program) {
            case .program: return problem(ofScript: folder + "/" + program)
            case .unknown: return nil
            case .folder, .file, .nothing: continue
            }
        }
        for folder in (path == nil ? inspection.callerPath ?? "" : "").split(separator: ":") where folder.hasPrefix("/")
        {
            guard find(folder + "/" + program) == .program else { continue }
            return "\(quoted(program)) is in \(folder), which is on your PATH, but not on that of torpord as a service "
                + "(\(searched)): write \(quoted(folder + "/" + program)), or environment = { PATH = "
                + "\(quoted(folder + ":" + searched)) }"
        }
        return "\(Self.noProgram)\(quoted(program)) on the PATH now (\(searched))"
    }

    /// That an interpreter finds no script where the command says; nil if it does, or if that is unknown.
    private func problem(ofScriptIn words: [String]) -> String? {
        guard let script = ScriptArgument(of: words), script.path != misplaced,
            // A placeholder for a scene, a URL or a setting.
            !script.path.utf8.contains(UInt8(ascii: "%")), SettingTemplate.names(in: script.path).isEmpty
        else { return nil }
        let directory = app.directory ?? "/"
        if !script.path.hasPrefix("/") {
            // Without `directory`, the app begins in its user's home, if that exists.
            if app.directory == nil, app.user != nil { return nil }
            if find(directory) != .folder { return nil }
        }
        // The kernel resolves a symlink before the `..` behind it, so leave the path as it is.
        let path = script.path.hasPrefix("/") ? script.path : (directory == "/" ? "" : directory) + "/" + script.path
        if ([""] + script.endings).contains(where: { find(path + $0) != .nothing }) { return nil }
        if script.isOnPath, !script.path.contains("/"), isOnPath(script.path) { return nil }
        let normal = Path.normal(path)
        let name = normal.split(separator: "/").last.map(String.init) ?? normal
        let folder = Path.folder(normal)
        return "\(Self.noScript)\(quoted(name)) in \(folder) now"
            + draft.hint(name, among: system.names(folder) ?? [], within: 1)
    }

    /// Whether there may be a file of that name on the app's PATH.
    private func isOnPath(_ name: String) -> Bool {
        let path = app.environment["PATH"]
        // The files of `environment_file` may set PATH.
        if path == nil, !app.environmentFiles.isEmpty { return true }
        let folders = (path ?? inspection.searchPath).split(separator: ":").map(String.init)
        return folders.contains { find($0 + "/" + name) != .nothing }
    }

    /// Why the kernel cannot run an executable text file, such as a script without an interpreter line. Nil if it can,
    /// or if the file is not a text file.
    private func problem(ofScript path: String) -> String? {
        guard let head = inspection.head(path) else { return nil }
        guard head.starts(with: "#!".utf8) else {
            let isText = head.allSatisfy { $0 >= 0x20 && $0 != 0x7f || (0x09...0x0d).contains($0) }
            return isText ? "\(quoted(path)) cannot be run: its first line must name a program, as in #!/bin/sh" : nil
        }
        let line = head.prefix { $0 != UInt8(ascii: "\n") }.dropFirst(2)
        if line.last == UInt8(ascii: "\r") {
            return "\(quoted(path)) cannot be run: its lines end as on Windows (CRLF); "
                + "‘sed -i 's/\\r$//' FILE’ changes that"
        }
        let words = line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        guard let word = words.first, word.count + 2 < head.count else { return nil }
        let interpreter = String(wire: word)
        guard interpreter.hasPrefix("/"), find(interpreter) == .nothing else { return nil }
        return "\(quoted(path)) cannot be run now: there is no \(quoted(interpreter)), which its first line names"
    }
}
