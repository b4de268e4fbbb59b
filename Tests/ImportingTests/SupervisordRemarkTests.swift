// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Testing

@Suite("Remarks about what is imported from supervisord and systemd are true")
struct SupervisordRemarkTests {
    @Test("a value that a later line or file replaces is named, with the line that counts")
    func overridden() throws {
        let files = [
            "supervisord.conf":
                "[include]\nfiles = jobs/*.conf\n[program:a]\ncommand=/bin/a\ncommand=/bin/b\nuser=nobody\nuser=nobody\n",
            "jobs/a.conf": "[program:c]\ncommand=/bin/c\n[include]\nfiles = none\n",
            "jobs/b.conf": "[program:c]\ncommand=/bin/d\n",
        ]
        let found = try Imported("supervisord.conf", files)
        #expect(try found["a"].exec == ["/bin/b"] && found["c"].exec == ["/bin/d"])
        let end = "sets it again: the last value counts, as in supervisord."
        let told = found.result.remarks.filter { $0.text.hasSuffix(end) }
        #expect(
            told.map(\.text) == [
                "command of [program:a] is left out here, since line 5 \(end)",
                "command of [program:c] is left out here, since line 2 of b.conf \(end)",
            ]
        )
        #expect(told.map(\.line) == [4, 2] && told.map(\.file) == [nil, "a.conf"])
    }

    @Test("keys for all programs in the file that includes an imported folder are named")
    func notRead() throws {
        let main = "[supervisord]\numask=027\nminfds=4096\nlogfile=/l\n[include]\nfiles = jobs/*.conf\n"
        let files = ["supervisord.conf": main, "jobs/a.conf": "[program:a]\ncommand=/bin/a\n"]
        let text = "minfds and umask of [supervisord] in /srv/app/supervisord.conf are left out, since only the folder "
        #expect(try Imported("jobs", files).result.remarks.contains { $0.text.hasPrefix(text) })
        #expect(try !Imported("supervisord.conf", files).result.remarks.contains { $0.text.hasPrefix(text) })
    }

    @Test("a unit that forks shows how a known program stays in the foreground")
    func forking() throws {
        let unit = "[Service]\nType=forking\nExecStart=/usr/sbin/nginx -g 'daemon on;'\n"
        let told = try Importer.read("/srv/app/nginx.service", in: tree(["nginx.service": unit]))
        #expect(told.programs[0].remarks[0].text.hasSuffix("(such as ‘nginx -g 'daemon off;'’)"))
    }

    @Test("minfds above the hard limit says which torpord can launch its programs")
    func files() throws {
        var source = tree(["supervisord.conf": "[supervisord]\nminfds=65000\n[program:w]\ncommand=w\n"])
        source.openFiles = SourceTree.Bound(soft: 1024, hard: 20_000)
        let found = try Imported("supervisord.conf", in: source)
        #expect(try found["w"].limits.map { "\($0.name) \($0.soft):\($0.hard)" } == ["nofile 65000:65000"])
        let told = found.result.remarks.filter { $0.text.hasPrefix("minfds: ") }.map(\.text)
        #expect(told.count == 1 && told[0].hasPrefix("minfds: 65000 is above 20000, the hard limit of open files "))
        #expect(told.first?.contains("CAP_SYS_RESOURCE") == true)
    }
}
