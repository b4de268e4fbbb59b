// SPDX-License-Identifier: Apache-2.0

import Configuration
import Varlink

/// An app for a user's first torpor.toml, derived from the files in a folder.
public struct FirstApp: Sendable, Equatable {
    /// The app's name.
    public var name: String
    /// The program and its arguments.
    public var exec: [String]
    /// The port of this machine that the app listens on; nil if unknown, or if there is none.
    public var port: UInt16?
    /// Whether the app is suspended while no client is connected.
    public var sleeps = false
    /// The file from which the app was derived, to name it to the user; nil for the example app that ‘torpor init’
    /// writes if it finds none.
    public var origin: String?

    /// Creates an app with default values for everything else.
    public init(name: String, exec: [String], port: UInt16? = nil, origin: String? = nil) {
        self.name = name
        self.exec = exec
        self.port = port
        self.origin = origin
    }

    /// An example app that runs on every machine with Python: it serves files over HTTP that all users may read anyway.
    /// The folder of the configuration may hold secrets, and any user of the machine can connect.
    public static let example = FirstApp(
        name: "web",
        exec: ["python3", "-m", "http.server", "8000", "--bind", "127.0.0.1", "--directory", "/usr/share"],
        port: 8000
    )

    /// Converts a text to a valid app name.
    public static func validName(_ text: String) -> String { Names.valid(text) }

    /// The words of a command that a user has typed. If the command needs a shell, the words run a shell with the
    /// command. Nil if a quote is not closed.
    public static func words(_ command: String) -> [String]? {
        guard let words = ShellWords.split(command), !words.isEmpty else { return nil }
        return ShellWords.need(command) == .none ? words : ["/bin/sh", "-c", command]
    }

    /// The command as a user would type it.
    public var command: String { exec.map(ShellWords.quote).joined(separator: " ") }
}

extension FirstApp {
    /// The apps that the programs in a folder could become, the most likely one first.
    public static func found(in folder: String, _ tree: SourceTree) -> [FirstApp] {
        let name = Names.valid(SourceTree.lastPart(folder))
        return [node(folder, name, tree), django(folder, name, tree), python(folder, name, tree)].compactMap { $0 }
    }

    /// The app of a package.json that has a start script: `npm start`.
    private static func node(_ folder: String, _ name: String, _ tree: SourceTree) -> FirstApp? {
        guard let bytes = tree.read(folder + "/package.json"), let package = try? JSON.parse(bytes),
            package["scripts"]?["start"]?.stringValue != nil
        else { return nil }
        let tools = [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn")]
        let tool = tools.first { tree.read(folder + "/" + $0.0) != nil }?.1 ?? "npm"
        let written = package["name"]?.stringValue.map { Names.valid(SourceTree.lastPart($0)) }
        return FirstApp(name: written ?? name, exec: [tool, "start"], origin: "package.json")
    }

    private static func interpreter(_ folder: String, _ tree: SourceTree) -> String {
        [".venv", "venv"].first { tree.names(folder + "/\($0)/bin")?.contains("python") == true }.map {
            "\($0)/bin/python"
        }
            ?? "python3"
    }

    private static func django(_ folder: String, _ name: String, _ tree: SourceTree) -> FirstApp? {
        guard tree.read(folder + "/manage.py") != nil else { return nil }
        let exec = [interpreter(folder, tree), "manage.py", "runserver", "--noreload", "127.0.0.1:8000"]
        return FirstApp(name: name, exec: exec, port: 8000, origin: "manage.py")
    }

    private static func python(_ folder: String, _ name: String, _ tree: SourceTree) -> FirstApp? {
        let python = interpreter(folder, tree)
        for file in ["app.py", "main.py"] {
            guard let text = tree.text(folder + "/" + file) else { continue }
            let module = String(file.dropLast(3))
            if text.contains("FastAPI(") || text.contains("Starlette(") {
                let exec = [python, "-m", "uvicorn", module + ":app", "--host", "127.0.0.1", "--port", "8000"]
                return FirstApp(name: name, exec: exec, port: 8000, origin: file)
            }
            if text.contains("Flask(") {
                let exec = [python, "-m", "flask", "--app", module, "run", "--host", "127.0.0.1", "--port", "5000"]
                return FirstApp(name: name, exec: exec, port: 5000, origin: file)
            }
            return FirstApp(name: name, exec: [python, file], origin: file)
        }
        return nil
    }

    /// A configuration with only this app, with comments for the user who edits it.
    public var toml: String {
        var text = """
            # Torpor's configuration: torpor.toml(5) describes every key. After an edit, run torpor check \
            torpor.toml, then torpor apply.

            [apps.\(TOMLValue.key(name))]
            \(exec == Self.example.exec ? "# An example: put your program here.\n" : "")\
            exec = \(TOMLValue.strings(exec).text(after: "exec"))
            # Relative paths begin at the folder of this file.
            directory = "."

            """
        if let port {
            text +=
                "# It is ready when it accepts a connection.\nready = { tcp = \"127.0.0.1:\(port)\" }\nlaunch_deadline = \"30s\"\n"
        }
        text += "# \"always\" restarts it after success too, \"never\" does not restart it.\nrestart = \"on-failure\"\n"
        if sleeps {
            text +=
                "# It starts in the background and is suspended after background_time"
                + "\(port == nil ? "" : ", until a client connects").\n"
            text += "launch = \"background\"\nbackground_time = \"10s\"\n"
            if port != nil { text += "wake_on_connect = true\n" }
        } else if port != nil {
            text +=
                "# A connection wakes it after ‘torpor suspend \(name)’ or a policy has suspended it.\n"
                + "wake_on_connect = true\n"
        }
        text += """
            # Variables, and a file with more of them:
            # environment = { LANG = "C.UTF-8" }
            # environment_file = "-.env"

            # More apps: one table each.
            # [apps.worker]
            # exec = ["/path/to/worker", "--verbose"]
            # requires = [\(TOMLValue.string(name).text)]

            """
        return text
    }
}
