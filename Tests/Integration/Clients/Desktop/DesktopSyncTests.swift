// SPDX-License-Identifier: Apache-2.0

import Configuration
import DaemonHarness
import DesktopEntries
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// Entries are judged by the programs of freedesktop.org, and clicked by those that a desktop uses.
@Suite("Apps in the menus of a desktop", .serialized) struct DesktopSyncTests {
    /// Whether these programs are here; what is missing is printed.
    private static func has(_ programs: [String: String]) -> Bool {
        let path = (ThisProcess.environment("PATH") ?? "/usr/bin:/bin").split(separator: ":")
        let missing = programs.filter { program, _ in !path.contains { File.isExecutable($0 + "/" + program) } }
        guard !missing.isEmpty else { return true }
        print("skipped: clicks on desktop entries, without \(missing.values.sorted().joined(separator: ", "))")
        return false
    }

    static let validates = has(["desktop-file-validate": "desktop-file-utils"])
    static let opens = validates && has(["xdg-open": "xdg-utils", "update-desktop-database": "desktop-file-utils"])
    static let starts = validates && has(["gio": "libglib2.0-bin"])
    static let launches = opens && has(["gtk-launch": "libgtk-3-bin", "Xvfb": "xvfb", "gio": "libglib2.0-bin"])
    static let acts: Bool = {
        let program = "from gi.repository import Gio; Gio.DesktopAppInfo"
        guard opens, (try? Spawn.run(["/usr/bin/python3", "-c", program]))?.code == 0 else {
            print("skipped: actions of desktop entries, without python3-gi")
            return false
        }
        return true
    }()

    /// A home of a user who has nothing but these entries.
    private func desktop(_ daemon: Daemon) -> [String: String] {
        let home = daemon.directory + "/home"
        return [
            "HOME": home, "XDG_DATA_HOME": home + "/share", "XDG_CONFIG_HOME": home + "/config",
            "XDG_CACHE_HOME": home + "/cache", "XDG_CURRENT_DESKTOP": "", "DESKTOP_SESSION": "", "KDE_FULL_SESSION": "",
            "XDG_DATA_DIRS": "/usr/local/share:/usr/share", "TORPOR_MANAGER_SOCKET": "", "BROWSER": "/bin/false",
            // xdg-open only asks whether there is one.
            "DISPLAY": ":4711", "WAYLAND_DISPLAY": "", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent",
            "LC_ALL": "C.UTF-8",
        ]
    }

    private func sync(_ daemon: Daemon, _ words: [String] = ["--user"]) throws -> (code: Int32, output: String) {
        let all = [Built.path("torpor"), "desktop", "sync", "--socket", daemon.socket] + words
        return try Spawn.run(all, environment: desktop(daemon))
    }

    private func folder(_ daemon: Daemon) -> String { daemon.directory + "/home/share/applications" }

    private func validate(_ files: [String]) throws {
        let (code, output) = try Spawn.run(["/usr/bin/desktop-file-validate"] + files)
        #expect(code == 0 && !output.contains("error"), "\(output)")
    }

    private static let notes = """
        \(Delegates.head)title = { default = "Notes; 100% \\\\ \\"quick\\"", de = "Notizen", pt-BR = "Caderno", sr-Latn = "Beleške" }
        summary = { default = "Keeps what you write", de = "Bewahrt, was Sie schreiben" }
        icon = { default = "@D/notes.svg", dark = "@D/dark.svg" }
        categories = ["Utility", "TextEditor"]
        url_schemes = ["torpor-notes", "x+y.z-1"]
        opens = ["text/x-torpor-note", "*.md", "image/*"]

        [apps.7zip]
        exec = ["/bin/sleep", "1000"]
        launch = "on-demand"
        title = "Ünïcödé 7"

        [apps."a.b"]
        exec = ["/bin/sleep", "1000"]
        launch = "on-demand"
        title = "%i"

        [apps.a_b]
        exec = ["/bin/sleep", "1000"]
        launch = "on-demand"

        [apps.job]
        exec = ["/bin/true"]
        type = "oneshot"
        launch = "on-demand"
        title = "Job"

        [apps.tab]
        exec = ["/bin/sleep", "%s"]
        scenes = { max_live = 2 }
        title = "Tab %s"

        """

    @Test("Entries are valid, follow the configuration, and stay as they are otherwise", .enabled(if: validates))
    func valid() throws {
        try withDaemon(Self.notes, files: Delegates.files()) { daemon in
            _ = try daemon.call(.openScene(OpenSceneRequest(template: "tab", name: "x")))
            let trial = try sync(daemon, ["--user", "--dry-run"])
            #expect(trial.code == 0 && trial.output.contains("would write io.torpor.web.desktop\n"), "\(trial)")
            #expect(!File.exists(folder(daemon)))
            let first = try sync(daemon)
            #expect(first.code == 0 && first.output.contains("wrote io.torpor._x37zip.desktop\n"), "\(first)")
            var files = try File.list(folder(daemon)).filter { $0.hasSuffix(".desktop") }.sorted()
            #expect(
                files == ["io.torpor._x37zip.desktop", "io.torpor.a_x2Eb.desktop", "io.torpor.web.desktop"],
                "\(files)"
            )
            try validate(files.map { folder(daemon) + "/" + $0 })
            let second = try sync(daemon)
            #expect(second.output == "3 entries are up to date\nin \(folder(daemon))\n", "\(second)")
            // All of them; names that are alike stay different.
            let all = try sync(daemon, ["--user", "--all"])
            #expect(all.output.contains("wrote io.torpor.a_b.desktop\n"), "\(all)")
            files = try File.list(folder(daemon)).filter { $0.hasSuffix(".desktop") }
            #expect(files.count == 5 && !files.contains { $0.contains("tab") }, "\(files)")
            try validate(files.map { folder(daemon) + "/" + $0 })
            _ = try daemon.apply(Delegates.head + "title = \"Notes\"\n")
            let last = try Spawn.run(
                [Built.path("torpor"), "desktop", "sync", "--json", "--user", "--socket", daemon.socket],
                environment: desktop(daemon)
            )
            let json = try JSON.parse(last.output)
            #expect(json["written"] == ["io.torpor.web.desktop"] && json["removed"]?.arrayValue?.count == 4, "\(last)")
            #expect(json["dry_run"] == false && json["folder"] == .string(folder(daemon)))
            // A file that somebody else made under the name is told, and stays.
            try File.write(folder(daemon) + "/io.torpor.web.desktop", "mine")
            let refused = try sync(daemon)
            #expect(refused.code == 1 && refused.output.contains("was not made by Torpor"), "\(refused)")
            #expect(try File.readString(folder(daemon) + "/io.torpor.web.desktop") == "mine")
        }
    }

    @Test("Every category that the configuration takes is one for the validator", .enabled(if: validates))
    func categories() throws {
        let path = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let schema = try JSON.parse(File.readString(Sources.root + "/config/torpor.schema.json", limit: 1 << 24))
        let items = schema["$defs"]?["app"]?["properties"]?["categories"]?["items"]
        let names = items?["anyOf"]?.arrayValue?.first?["enum"]?.arrayValue ?? []
        let categories = names.compactMap(\.stringValue)
        #expect(categories.count > 100)
        var command = DesktopEntry.Command()
        command.program = "/bin/true"
        var apps: [DesktopApp] = []
        for (index, category) in categories.enumerated() {
            var app = DesktopApp(name: "a\(index)")
            (app.title, app.categories) = (category, [category])
            apps.append(app)
        }
        // What no configuration takes, but a path may have.
        var odd = DesktopApp(name: "odd; name% \\\n")
        (odd.title, odd.icon) = ("Odd", "/a b;%\\\"'$`.png")
        (odd.categories, odd.files) = (["X-Own"], ["text/plain"])
        command.socket = "/tmp/a b;%u\\\"'$`ä/io.torpor"
        let entries = DesktopEntries(of: apps + [odd], command, socket: "/s")
        _ = try DesktopFolder(path).sync(entries)
        try validate(entries.entries.map { path + "/" + $0.file })
    }

    @Test("Desktops pass arguments as they are, whatever is in a path", .enabled(if: starts)) func arguments() throws {
        let path = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let odd = path + "/a b;'\"$x`\\ä"
        try File.makeDirectory(odd)
        let program = """
            #!/bin/sh
            for word; do printf '%s\\n' "$word"; done >"${0%/*}/words.new"
            mv "${0%/*}/words.new" "${0%/*}/words"

            """
        try Spawn.lock.withLock {
            try File.write(odd + "/record", program)
            chmod(odd + "/record", 0o755)
        }
        var command = DesktopEntry.Command()
        (command.program, command.socket) = (odd + "/record", odd + "/%u/socket")
        var app = DesktopApp(name: "web@1")
        (app.title, app.schemes) = ("Web", ["web"])
        _ = try DesktopFolder(path).sync(DesktopEntries(of: [app], command, socket: odd))
        let file = path + "/io.torpor.web_x401.desktop"
        try validate([file])
        func launch(_ words: [String]) throws -> [String] {
            try? FileManager.default.removeItem(atPath: odd + "/words")
            let (code, output) = try Spawn.run(["/usr/bin/gio", "launch", file] + words)
            #expect(code == 0, "\(output)")
            let end = Clock.monotonic() + .seconds(20)
            while !File.exists(odd + "/words") {
                guard Clock.monotonic() < end else { throw Trouble("the program does not run") }
                usleep(2_000)
            }
            return try File.readString(odd + "/words").split(separator: "\n").map(String.init)
        }
        let words = ["open", "--app", "web@1", "--socket", odd + "/%u/socket"]
        #expect(try launch([]) == words)
        #expect(try launch(["web:a;b"]) == words + ["web:a;b"])
    }

    @Test("A configuration has entries without a supervisor") func configured() throws {
        let path = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let toml =
            "[supervisor]\nruntime_directory = \"\(path)/a b\"\n[apps.a]\nexec = [\"/bin/true\"]\ntitle = \"A\"\n"
        try File.write(path + "/torpor.toml", toml)
        let words = [
            Built.path("torpor"), "desktop", "sync", "--config", path + "/torpor.toml", "--folder", path + "/entries",
        ]
        let (code, output) = try Spawn.run(words)
        #expect(code == 0 && output.contains("wrote io.torpor.a.desktop"), "\(output)")
        let text = try File.readString(path + "/entries/io.torpor.a.desktop")
        #expect(text.contains(" foreground a --socket \"\(path)/a b/io.torpor\"\n"), "\(text)")
        let wrong = try Spawn.run(words + ["--user"])
        #expect(wrong.code == 2 && wrong.output.contains("--user, --system and --folder: choose one"), "\(wrong)")
    }

    @Test("A user's torpord brings its entries up to date at the start, and after each apply") func followed() throws {
        let entries =
            Users.isRoot
            ? [
                "/bin/sh", "-c",
                "/usr/bin/chown -R 65534:65534 @D; "
                    + "exec /usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"",
                "sh",
            ] : []
        func toml(_ titles: [String]) -> String {
            let apps = titles.map {
                "[apps.\($0)]\nexec = [\"/bin/sleep\", \"1000\"]\ntitle = \"\($0)\"\nlaunch = \"on-demand\"\n"
            }
            return "desktop_entries = true\n" + apps.joined()
        }
        let place = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: place) }
        if Users.isRoot { try File.setOwner(place, uid: 65534, gid: 65534) }
        // Without the program that indexes entries there is a warning, which torpord passes on.
        let environment = ["XDG_DATA_HOME": place, "PATH": "/nowhere"]
        let daemon = try Daemon(toml(["a", "b"]), environment: environment, wrapper: entries)
        try daemon.waitUntilItAnswers()
        func files() -> [String] {
            ((try? File.list(place + "/applications")) ?? []).filter { $0.hasSuffix(".desktop") }.sorted()
        }
        try daemon.eventually("they are there") { files() == ["io.torpor.a.desktop", "io.torpor.b.desktop"] }
        try daemon.eventually("the warning is logged") {
            daemon.log.contains("desktop entries are up to date; there is no update-desktop-database on the PATH")
        }
        let text = try File.readString(place + "/applications/io.torpor.a.desktop")
        #expect(text.contains(" foreground a --socket \(daemon.socket)\n") && text.contains("Exec=/"), "\(text)")
        _ = try daemon.apply(toml(["b", "c"]))
        try daemon.eventually("they are others") { files() == ["io.torpor.b.desktop", "io.torpor.c.desktop"] }
        try daemon.waitUntilItAnswers()
        // What cannot be written is told, and nothing else suffers.
        try File.removeTree(place + "/applications")
        try File.write(place + "/applications", "")
        _ = try daemon.apply(toml(["c"]))
        try daemon.eventually("it is told") { daemon.log.contains("desktop entries are not up to date") }
        try daemon.done(.foreground, "c")
        try daemon.stop()
    }

    private func urls(_ daemon: Daemon) throws -> [String] {
        try daemon.heard("web").filter { $0.what == "message" && $0.name == "openURL" }
            .compactMap { $0.parameters["url"]?.stringValue }
    }

    /// Calls a program of the desktop, and it has done its part.
    private func run(_ words: [String], _ daemon: Daemon, _ more: [String: String] = [:]) throws {
        let environment = desktop(daemon).merging(more) { $1 }
        let (code, output) = try Spawn.run(["/usr/bin/env"] + words, environment: environment)
        #expect(code == 0, "\(words): \(output)")
    }

    @Test("xdg-open opens a URL and a file in the app that is running, or not yet", .enabled(if: opens)) func opened()
        throws
    {
        try withDaemon(Self.notes, files: Delegates.files()) { daemon in
            #expect(try sync(daemon).code == 0)
            #expect(File.exists(folder(daemon) + "/mimeinfo.cache"))
            try File.makeDirectories(daemon.directory + "/home/config")
            for type in ["x-scheme-handler/torpor-notes", "text/markdown"] {
                try run(["xdg-mime", "default", "io.torpor.web.desktop", type], daemon)
            }
            try run(["xdg-open", "torpor-notes:today?a=1&b=2"], daemon)
            #expect(try daemon.summary("web").state == "active")
            #expect(try urls(daemon) == ["torpor-notes:today?a=1&b=2"])
            try daemon.done(.background, "web")
            try File.write(daemon.directory + "/read me.md", "x")
            try run(["xdg-open", daemon.directory + "/read me.md"], daemon)
            let all = try urls(daemon)
            #expect(all.count == 2 && all[1].hasSuffix("/read%20me.md"), "\(all)")
            #expect(try daemon.summary("web").state == "active")
        }
    }

    /// A display without a screen, for programs that want one.
    private func withDisplay(_ daemon: Daemon, _ body: (String) throws -> Void) throws {
        let output = daemon.directory + "/display"
        let words = ["/usr/bin/env", "Xvfb", "-displayfd", "1", "-nolisten", "tcp", "-screen", "0", "320x240x24"]
        let pid = try Spawn.start(words, environment: [:], output: output)
        defer {
            // It removes its socket and its lock.
            kill(pid, SIGTERM)
            let end = Clock.monotonic() + .seconds(10)
            while waitpid(pid, nil, WNOHANG) == 0 {
                if Clock.monotonic() > end { kill(pid, SIGKILL) }
                usleep(2_000)
            }
        }
        var number: Int?
        try daemon.eventually("Xvfb says its number") {
            let lines = ((try? File.readString(output)) ?? "").split(separator: "\n")
            number = lines.lazy.compactMap { Int($0) }.first
            return number != nil
        }
        try body(":\(try #require(number))")
    }

    @Test("gtk-launch and gio start the app and open URLs in it", .enabled(if: launches)) func launched() throws {
        try withDaemon(Self.notes, files: Delegates.files()) { daemon in
            #expect(try sync(daemon).code == 0)
            try withDisplay(daemon) { display in
                // From the menu: there is no URL.
                try run(["gtk-launch", "io.torpor.web"], daemon, ["DISPLAY": display])
                try daemon.waitFor("web", "active")
                #expect(try urls(daemon).isEmpty)
                try run(["gtk-launch", "io.torpor.web", "torpor-notes:menu"], daemon, ["DISPLAY": display])
                try daemon.eventually("it has the URL") { try urls(daemon) == ["torpor-notes:menu"] }
                try run(["gtk-launch", "io.torpor._x37zip"], daemon, ["DISPLAY": display])
                try daemon.waitFor("7zip", "active")
                try run(["gio", "open", "x+y.z-1:a%20b"], daemon, ["DISPLAY": display])
                try daemon.eventually("it has the other URL") { try urls(daemon).last == "x+y.z-1:a%20b" }
            }
        }
    }

    @Test("The entry's actions suspend the app and quit it", .enabled(if: acts)) func actions() throws {
        try withDaemon(Self.notes, files: Delegates.files()) { daemon in
            #expect(try sync(daemon).code == 0)
            try daemon.done(.foreground, "web")
            func act(_ action: String) throws {
                let program = """
                    from gi.repository import Gio
                    Gio.DesktopAppInfo.new_from_filename("\(folder(daemon))/io.torpor.web.desktop").launch_action("\(action)", None)
                    """
                try run(["/usr/bin/python3", "-c", program], daemon)
            }
            try act("suspend")
            try daemon.waitFor("web", "suspended")
            try act("quit")
            try daemon.waitFor("web", "not-running")
            // It can be started again from the menu.
            try run(["gio", "launch", folder(daemon) + "/io.torpor.web.desktop"], daemon)
            try daemon.waitFor("web", "active")
        }
    }
}
