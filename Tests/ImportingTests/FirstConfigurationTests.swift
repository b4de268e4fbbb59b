// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Lifecycle
import Testing

@Suite("A first configuration is made of what is there")
struct FirstConfigurationTests {
    func load(_ app: FirstApp) throws -> AppSpecification {
        var system = machine()
        let text = Array(app.toml.utf8)
        system.read = { _ in .success(text) }
        return try #require(
            ConfigurationLoader.load(path: "/srv/app/torpor.toml", environment: [:], system: system).get().apps.first
        )
    }

    @Test("the example works at once, and serves no file that is not for everyone")
    func example() throws {
        let app = try load(.example)
        // Any user can connect, and beside its file are keys and environments.
        #expect(app.exec.suffix(2) == ["--directory", "/usr/share"])
        #expect(FirstApp.example.toml.contains("[apps.web]\n# An example: put your program here.\nexec = ["))
        #expect(FirstApp(name: "a", exec: ["b"]).toml.contains("[apps.a]\nexec = [\"b\"]\n"))
        #expect(app.directory == "/srv/app" && app.exec.prefix(3) == ["python3", "-m", "http.server"])
        #expect(app.wakeOnConnect == .background)
    }

    @Test(
        "programs are known by their files",
        arguments: [
            (["package.json": #"{"name":"@me/site","scripts":{"start":"x"}}"#], "site", ["npm", "start"]),
            (["package.json": #"{"scripts":{"start":"x"}}"#, "yarn.lock": ""], "app", ["yarn", "start"]),
            (["manage.py": ""], "app", ["python3", "manage.py", "runserver", "--noreload", "127.0.0.1:8000"]),
            (
                ["app.py": "x = Flask(__name__)", ".venv/bin/python": ""], "app",
                [".venv/bin/python", "-m", "flask", "--app", "app", "run", "--host", "127.0.0.1", "--port", "5000"]
            ),
            (
                ["main.py": "app = FastAPI()"], "app",
                ["python3", "-m", "uvicorn", "main:app", "--host", "127.0.0.1", "--port", "8000"]
            ),
            (["main.py": "print()"], "app", ["python3", "main.py"]),
        ]
    )
    func programs(files: [String: String], name: String, exec: [String]) throws {
        let found = try #require(FirstApp.found(in: "/srv/app", tree(files)).first)
        #expect(found.name == name && found.exec == exec)
        #expect(try load(found).exec == exec)
    }

    @Test("what sleeps begins in the background, and is woken by who connects")
    func sleeps() throws {
        var app = FirstApp(name: "x", exec: ["a", "b \"c\"", "d\ne"], port: 80)
        app.sleeps = true
        let loaded = try load(app)
        #expect(
            loaded.launch == .background && loaded.wakeOnConnect == .background
                && loaded.exec == ["a", "b \"c\"", "d\ne"]
        )
    }

    @Test("what is no start script is nothing", arguments: ["", "{", "[]", #"{"scripts":{}}"#, #"{"scripts":4}"#])
    func wrong(text: String) {
        #expect(FirstApp.found(in: "/srv/app", tree(["package.json": text])).isEmpty)
    }
}
