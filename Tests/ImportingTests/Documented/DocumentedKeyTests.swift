// SPDX-License-Identifier: Apache-2.0

import Importing
import Testing

/// Goes through every key that the sources' documentation has: what has no effect is told, by its name.
@Suite("No key of a source is lost without a word")
struct DocumentedKeyTests {
    /// What comes of a source: the file without its comments, and all that was said.
    private struct Outcome {
        var file: String
        var remarks: Set<String>

        init(_ name: String, _ files: [String: String], hasPrograms: Bool = true) throws {
            let found = try Imported(name, in: tree(files, hasPrograms: hasPrograms)).result
            file = found.toml.split(separator: "\n").filter { !$0.hasPrefix("#") }.joined(separator: "\n")
            remarks = Set((found.remarks + found.programs.flatMap(\.remarks)).map(\.text))
        }

        /// Whether a key has an effect, or is named where it was not without it.
        func tells(_ key: String, _ before: Outcome) -> Bool {
            file != before.file || remarks.subtracting(before.remarks).contains { $0.contains(key) }
        }
    }

    private func check(
        _ key: String,
        _ name: String,
        without: [String: String],
        with: [String: String],
        hasPrograms: Bool = true
    ) throws {
        let before = try Outcome(name, without, hasPrograms: hasPrograms)
        let after = try Outcome(name, with, hasPrograms: hasPrograms)
        #expect(
            after.tells(key, before),
            "\(key) has no effect, and nothing is said of it\n\(with)\n\(after.file)\n\(after.remarks.sorted())"
        )
    }

    private static func lines(_ text: String) -> [String] { text.split(separator: "\n").map(String.init) }
    private static func name(_ line: String) -> String { String(line.prefix { $0 != "=" && $0 != ":" && $0 != " " }) }

    // MARK: supervisord

    private func supervisord(_ line: String, _ without: String, _ with: String) throws {
        try check(
            // Of the files of [include] each that is missing is named.
            line.hasPrefix("files=") ? "[include]" : Self.name(line),
            "supervisord.conf",
            without: ["supervisord.conf": without],
            with: ["supervisord.conf": with]
        )
    }

    @Test("of supervisord's sections", arguments: SupervisordKeys.sections.map(\.section))
    func sections(section: String) throws {
        let program = "[program:web]\ncommand=/bin/web\n[program:b]\ncommand=/bin/b\npriority=9\n"
        for line in Self.lines(SupervisordKeys.sections.first { $0.section == section }?.keys ?? "") {
            // A group without programs has no priority.
            let beside = line.hasPrefix("priority") ? "programs=web\n" : ""
            let head = program + "[\(section)]\n" + beside
            try supervisord(line, head, head + line + "\n")
        }
    }

    @Test("of a program of supervisord", arguments: SupervisordKeys.program.map(\.key))
    func program(line: String) throws {
        let beside = SupervisordKeys.program.first { $0.key == line }?.beside ?? ""
        let head = "[program:a]\ncommand=/bin/a\npriority=7\n[program:web]\n" + beside
        let command = line.hasPrefix("command") ? "" : "command=/bin/web\n"
        try supervisord(line, head + "command=/bin/web\n", head + command + line + "\n")
    }

    @Test("sections of supervisord that are no programs", arguments: SupervisordKeys.others)
    func others(text: String) throws {
        let head = "[program:web]\ncommand=/bin/web\n"
        let after = try Outcome("supervisord.conf", ["supervisord.conf": head + text])
        #expect(after.remarks.contains { $0.contains("is not translated") })
    }

    // MARK: PM2

    @Test("of an ecosystem file of PM2", arguments: PM2Keys.app.map(\.key))
    func pm2(key: String) throws {
        let entry = try #require(PM2Keys.app.first { $0.key == key })
        func text(_ more: String) -> String {
            let own = key == "name" || key == "script" ? "" : #""name":"web","#
            let script = key == "script" ? "" : #","script":"a.js""#
            return #"{"apps":[{\#(own)\#(entry.beside)"x":1\#(script)\#(more)}]}"#
        }
        let without = key == "script" ? text(#","script":"a.js""#) : text("")
        try check(
            key,
            "ecosystem.json",
            without: ["ecosystem.json": without],
            with: ["ecosystem.json": text(#","\#(key)":\#(entry.value)"#)]
        )
    }

    @Test("beside the apps of PM2", arguments: PM2Keys.others.map(\.0))
    func besideApps(key: String) throws {
        let value = PM2Keys.others.first { $0.0 == key }?.1 ?? ""
        try check(
            key,
            "ecosystem.json",
            without: ["ecosystem.json": #"{"apps":[{"script":"a.js"}]}"#],
            with: ["ecosystem.json": #"{"apps":[{"script":"a.js"}],"\#(key)":\#(value)}"#]
        )
    }

    // MARK: Compose

    private static func compose(_ lines: [String], top: String = "") -> [String: String] {
        let text =
            top + "services:\n  db: {command: db}\n  base: {command: base, user: \"34\"}\n  web:\n"
            + lines.map { "    \($0)\n" }.joined()
        return ["compose.yaml": text]
    }

    @Test("of a service of a compose file", arguments: lines(ComposeKeys.service))
    func service(line: String) throws {
        let key = Self.name(line)
        let command = key == "command" ? [] : ["command: web"]
        try check(
            key,
            "compose.yaml",
            without: Self.compose(["command: web"]),
            with: Self.compose(command + [line])
        )
    }

    @Test("of tables in a service of a compose file", arguments: ComposeKeys.inner.indices)
    func inner(index: Int) throws {
        let (key, without, with) = ComposeKeys.inner[index]
        try check(
            key,
            "compose.yaml",
            without: Self.compose(["command: web", without]),
            with: Self.compose(["command: web", with])
        )
    }

    /// Keys that change nothing: of what is seen of `docker compose up`, and of ports that are open anyway.
    private static let idle: Set = ["attach", "expose", "provider", "develop"]

    @Test("of a service as a container", arguments: lines(ComposeKeys.service).filter { !idle.contains(name($0)) })
    func serviceContainer(line: String) throws {
        let key = Self.name(line)
        func files(_ lines: [String]) -> [String: String] {
            let text = "services:\n  db: {image: db}\n  base: {image: b, user: \"34\"}\n  web:\n"
            return ["compose.yaml": text + lines.map { "    \($0)\n" }.joined()]
        }
        let image = key == "image" ? [] : ["image: web"]
        try check(
            key,
            "compose.yaml",
            without: files(["image: web"]),
            with: files(image + [line]),
            hasPrograms: false
        )
    }

    @Test("beside the services of a compose file", arguments: lines(ComposeKeys.others))
    func besideServices(line: String) throws {
        try check(
            Self.name(line),
            "compose.yaml",
            without: Self.compose(["command: web"]),
            with: Self.compose(["command: web"], top: line + "\n")
        )
    }

    // MARK: systemd

    private func systemd(_ line: String, section: String) throws {
        let key = Self.name(line)
        let beside = SystemdKeys.company[key].map { $0 + "\n" } ?? ""
        let service = "[Service]\nExecStart=/bin/web\n" + beside
        try check(
            key,
            "web.service",
            without: ["web.service": service],
            with: ["web.service": service + "[\(section)]\n" + line + "\n"]
        )
    }

    @Test("of [Unit]", arguments: lines(SystemdKeys.unit))
    func unit(line: String) throws { try systemd(line, section: "Unit") }

    @Test("of [Install]", arguments: lines(SystemdKeys.install))
    func install(line: String) throws { try systemd(line, section: "Install") }

    @Test("of [Service]", arguments: lines(SystemdKeys.service))
    func systemdService(line: String) throws { try systemd(line, section: "Service") }

    @Test("of the socket of a service", arguments: lines(SystemdKeys.socket))
    func socket(line: String) throws {
        let service = "[Service]\nExecStart=/bin/web\n"
        let socket = "[Socket]\nListenStream=80\nListenDatagram=80\nListenStream=/run/web.sock\n"
        try check(
            Self.name(line),
            "web.service",
            without: ["web.service": service, "web.socket": socket],
            with: ["web.service": service, "web.socket": socket + line + "\n"]
        )
    }

    @Test("of the timer of a service", arguments: lines(SystemdKeys.timer))
    func timer(line: String) throws {
        let service = "[Service]\nExecStart=/bin/web\n"
        let timer = "[Timer]\nOnCalendar=daily\n"
        try check(
            Self.name(line),
            "web.service",
            without: ["web.service": service, "web.timer": timer],
            with: ["web.service": service, "web.timer": timer + line + "\n"]
        )
    }

    @Test("of the path of a service", arguments: lines(SystemdKeys.path))
    func path(line: String) throws {
        let service = "[Service]\nExecStart=/bin/web\n"
        let path = "[Path]\nPathExists=/other\n"
        try check(
            Self.name(line),
            "web.service",
            without: ["web.service": service, "web.path": path],
            with: ["web.service": service, "web.path": path + line + "\n"]
        )
    }

    // MARK: Containers

    private func quadlet(_ line: String, _ section: String, _ name: String) throws {
        let key = Self.name(line)
        let beside = key == "HealthCmd" ? "" : "HealthCmd=x\n"
        var files = [
            "web.container":
                "[Container]\nImage=docker.io/me/web\nNetwork=n.network\nVolume=v.volume:/v\n"
                + (section == "Container" ? beside : ""), "n.network": "[Network]\n", "v.volume": "[Volume]\n",
            "p.pod": "[Pod]\n", "pod-name": "",
        ]
        if section == "Pod" { files["web.container"]? += "Pod=p.pod\n" }
        let without = files
        files[name] = (files[name] ?? "") + line.replacing("Pod=pod-name", with: "Pod=p.pod") + "\n"
        // Options of a network or volume are in the command that makes it.
        let isCommand = section == "Network" || section == "Volume"
        try check(isCommand ? section.lowercased() : key, "web.container", without: without, with: files)
    }

    @Test("of a container of Quadlet", arguments: lines(ContainerKeys.container))
    func container(line: String) throws { try quadlet(line, "Container", "web.container") }

    @Test("of a pod of Quadlet", arguments: lines(ContainerKeys.pod).filter { !$0.hasPrefix("ServiceName") })
    func pod(line: String) throws { try quadlet(line, "Pod", "p.pod") }

    @Test("of a network of Quadlet", arguments: lines(ContainerKeys.network))
    func network(line: String) throws { try quadlet(line, "Network", "n.network") }

    @Test("of a volume of Quadlet", arguments: lines(ContainerKeys.volume))
    func volume(line: String) throws { try quadlet(line, "Volume", "v.volume") }

    private static func words(_ text: String) -> [String] { text.split(separator: " ").map(String.init) }

    @Test("options of docker run and podman run that have a value", arguments: words(ContainerKeys.valued))
    func valued(option: String) throws {
        let values = [
            "cpus": "2", "env": "A=b", "memory": "1g", "pids-limit": "7", "restart": "always", "shm-size": "1m",
            "stop-timeout": "3", "ulimit": "nofile=3", "publish": "1:1", "volume": "/a:/b",
            "mount": "type=tmpfs,target=/a",
            "tmpfs": "/a", "device": "/dev/x", "workdir": "/w", "pull": "always", "stop-signal": "INT",
            "health-on-failure": "kill", "cpu-quota": "50000", "cpu-shares": "512", "memory-reservation": "1g",
            "oom-score-adj": "9", "blkio-weight": "100",
        ]
        let usual = "docker run --health-cmd=x "
        let health = option == "health-cmd" ? "y" : option.hasPrefix("health-") ? "20" : nil
        try check(
            option,
            "run.sh",
            without: ["run.sh": usual + "me/web\n"],
            with: ["run.sh": usual + "--\(option) \(values[option] ?? health ?? "value") me/web\n"]
        )
    }

    @Test("options of docker run and podman run without a value", arguments: words(ContainerKeys.flags))
    func flags(option: String) throws {
        try check(
            option,
            "run.sh",
            without: ["run.sh": "docker run --health-cmd=x me/web\n"],
            with: ["run.sh": "docker run --health-cmd=x --\(option) me/web\n"]
        )
    }

    // MARK: Procfile

    @Test(
        "of what stands beside a Procfile, and lines of it",
        arguments: [
            (".foreman", "port: 3000\n"), (".overmind.env", "OVERMIND_PORT=1\n"), (".env", "PORT=3000\n"),
            ("Procfile", "web: other\n"), ("Procfile", "web: run\nrelease: job\n"), ("Procfile", "web: run\nno\n"),
        ]
    )
    func procfile(name: String, text: String) throws {
        let without = ["Procfile": "web: run\n"]
        try check(
            name == "Procfile" ? "colon" : name,
            "Procfile",
            without: without,
            with: without.merging([name: text]) { $1 }
        )
    }
}
