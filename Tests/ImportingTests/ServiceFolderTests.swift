// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Lifecycle
import Testing

@Suite("Service directories become apps")
struct ServiceFolderTests {
    @Test("of s6: run is executed as it is, and finish afterwards")
    func s6() throws {
        let files = [
            "a/run": "#!", "a/finish": "#!", "a/notification-fd": "3\n", "a/timeout-kill": "2500\n", "a/down": "",
            "a/dependencies.d/b": "", "b/type": "oneshot\n", "b/up": "true\n", "c/type": "bundle\n",
            "c/contents.d/a": "",
        ]
        let found = try Imported("", files)
        #expect(found.result.kind == .s6)
        let a = try found["a"]
        #expect(
            a.exec == ["/srv/app/a/run"] && a.directory == "/srv/app/a" && a.launch == .onDemand && a.requires == ["b"]
        )
        #expect(a.afterStop.map(\.command) == [["/srv/app/a/finish"]] && a.rules.grace == .milliseconds(2500))
        #expect(a.rules.restart == .always)
        #expect(found.remarks("a").contains { $0.contains("notification-fd") })
        #expect(try found["b"].rules.isOneshot && found["b"].exec == ["execlineb", "-P", "/srv/app/b/up"])
        #expect(found.remarks("c").contains { $0.contains("bundle") })
    }

    @Test("of runit: check says when it is ready, and log is told")
    func runit() throws {
        let found = try Imported("", ["a/run": "#!", "a/check": "#!", "a/log/run": "#!", "b/run": "#!"])
        #expect(found.result.kind == .runit)
        guard case .probe(let probe) = try found["a"].ready, case .command(let words) = probe.kind else {
            Issue.record("it has no probe")
            return
        }
        #expect(words == ["/srv/app/a/check"] && found.remarks("a").contains { $0.contains("log/run") })
        #expect(try found["b"].rules.grace == nil)
    }

    @Test("a folder with nothing, or with two configurations, is refused with what to do")
    func wrong() {
        for files in [["x/y": ""], ["Procfile": "a: b", "compose.yaml": "services: {}"]] {
            #expect(throws: ImportError.self) { try Importer.read("/srv/app", in: tree(files)) }
        }
        #expect(throws: ImportError.self) { try Importer.read("/srv/none", in: tree([:])) }
    }
}
