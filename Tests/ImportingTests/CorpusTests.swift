// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Linux
import Testing

@Suite("Whatever is read, what is written is valid")
struct CorpusTests {
    private static let seeds: [(name: String, text: String)] = [
        ("Procfile", "web: A=1 run ${PORT:-3} 'x y' && z\nworker: exec b\n"),
        (
            "supervisord.conf",
            "[supervisord]\nnodaemon=true\n[program:a]\ncommand=a %(ENV_X)s \"b\" ; c\nnumprocs=2\nenvironment=A=\"1\",B=2\n"
        ),
        (
            "compose.yaml",
            "x: &x {a: b}\nservices:\n  a:\n    <<: *x\n    command: run ${A:-b}\n    healthcheck: {test: [CMD, x]}\n    environment: [A=b]\n"
        ),
        ("pm2.json", "{ /* x */ apps: [{name:'a', script: 'a.js', instances: 2, env: {A: 1}}] }"),
        (
            "w.service",
            "[Unit]\nAfter=x.service\n[Service]\nExecStart=-/bin/a ${B} \\\n c\nRestart=always\nEnvironment=\"A=b c\"\n[Install]\nWantedBy=x\n"
        ),
        (
            "w.container",
            "[Container]\nImage=a.image\nImage=x\nExec=a \"b c\"\nEnvironment=A=b \"C=d\"\nVolume=a.volume:/b:Z\nPublishPort=80:80\nHealthCmd=curl -f localhost\nPodmanArgs=-it --cpus 2\n[Install]\nWantedBy=x\n"
        ),
        (
            "run.sh",
            "docker run -dit --name web -p 80:80 -e \"A=$B\" \\\n -v './a':/b --restart=on-failure:3 --health-cmd 'curl -f localhost' img:1 c d\n"
        ),
    ]

    /// Fails where the result is not valid; what cannot be read may be refused.
    private func check(_ path: String, _ tree: SourceTree) -> Bool {
        guard var result = try? Importer.read(path, in: tree) else { return false }
        result.validate(at: "/srv/app/torpor.toml", system: machine())
        var system = machine()
        let text = Array(result.toml.utf8)
        system.read = { _ in .success(text) }
        if case .failure(let list) = ConfigurationLoader.load(
            path: "/srv/app/torpor.toml",
            environment: [:],
            system: system
        ) {
            Issue.record("\(path): \(list)\n\(result.toml)")
        }
        return true
    }

    @Test("files that are cut off, and files with a byte that is another one", arguments: 0..<seeds.count)
    func damaged(index: Int) {
        let (name, text) = Self.seeds[index]
        let bytes = Array(text.utf8)
        var generator = Generator(state: UInt64(index) + 1)
        for round in 0..<400 {
            var damaged = bytes
            if round < bytes.count {
                damaged.removeLast(bytes.count - round)
            } else {
                for _ in 0..<3 {
                    damaged[Int(generator.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: generator.next())
                }
            }
            let copy = damaged
            let tree = SourceTree(read: { $0 == "/srv/app/" + name ? copy : nil }, names: { _ in nil })
            _ = check("/srv/app/" + name, tree)
        }
    }

    @Test("every file of the folder that TORPOR_CORPUS names")
    func corpus() throws {
        guard let folder = ThisProcess.environment("TORPOR_CORPUS") else {
            print("the corpus is not read: TORPOR_CORPUS names no folder of configurations")
            return
        }
        let tree = SourceTree(
            read: { path in try? File.read(path, limit: 1 << 22) },
            names: { path in (try? File.list(path))?.sorted() }
        )
        var count = 0
        for kind in tree.names(folder) ?? [] {
            for file in tree.names(folder + "/" + kind) ?? [] where check(folder + "/" + kind + "/" + file, tree) {
                count += 1
            }
        }
        #expect(count > 0)
    }

    private struct Generator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state >> 24
        }
    }
}
