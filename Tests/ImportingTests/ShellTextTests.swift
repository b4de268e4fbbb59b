// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Testing

@Suite("Variables of a script with docker run are those of the shell")
struct ShellTextTests {
    private func imported(_ text: String) throws -> Imported {
        try Imported("run.sh", in: tree(["run.sh": text], variables: ["HOME": "/home/me"]), kind: .dockerRun)
    }

    @Test(
        "what sets a variable, and what a variable expands to",
        arguments: [
            ("export A=b", "b"), ("readonly A=b", "b"), ("run() {\nlocal A=b", "b"), ("A=b; export A", "b"),
            ("A=x; A=b", "b"), ("A=x\nA+=y", "xy"), ("B=b; A=$B", "b"), ("A=\"${B:-b c}\"", "b c"),
            ("A=${B-'b'}$C1", nil), ("export -x A='b c'", "b c"), (": ${A:=b}", "b"), ("A=~/x", "/home/me/x"),
            ("B=1; A=${B:+b}", "b"), ("A=${B:-${C:-\"b\"}}", "b"), ("A=*", "*"), ("A={a,b}", "{a,b}"),
            ("cat <<END >x\nA=c\n  END\nEND\nA=b", "b"), ("A=b\ncat <<-'X' && true\nA=c\n\tX", "b"),
            ("A=b\ncat <<< A=c", "b"), ("(A=c); B=1", nil), ("A=$(id)", nil), ("A=`id`", nil), ("A=b; read A", nil),
            ("A=b; unset A", nil), ("A=b; if x; then A=c; fi", nil), ("for A in 1 2; do x; done", nil),
            ("A=b; x && A=c", nil), ("A=b; while x; do A=c; done", nil), ("case $1 in\na) A=c ;;\nesac", nil),
            ("case $1 in a) A=c ;; esac", nil),
            ("case $1 in a) x ;; esac; A=b", "b"), ("x | A=c", nil), ("[ x ] &&\nA=b", nil), ("f() {\nA=b\n}", "b"),
            ("if x; then y; fi; A=b", "b"), ("A=b; A=$A$NONE", nil), ("A=(b c)", nil),
        ] as [(String, String?)]
    )
    func variables(text: String, value: String?) throws {
        let found = try imported(text + "\ndocker run --name web -e \"X=$A\" img\n")
        if let value {
            #expect(try found["web"].environment == ["X": value])
        } else {
            #expect(found.apps.isEmpty && found.result.programs.last?.obstacle?.contains("variable") == true)
        }
    }

    @Test("an option without a value has that of the exported variable")
    func exported() throws {
        let text = """
            A=1; export A; B=2
            docker run --name one -e A -e B -e HOME img
            export A=3 HOME=$(id)
            docker run --name two -e A -e HOME img
            """
        let found = try imported(text)
        #expect(try found["one"].environment == ["A": "1", "HOME": "/home/me"])
        #expect(try found["two"].environment == ["A": "3"])
        #expect(found.remarks("one").contains { $0.contains("B has no value here") })
        #expect(found.remarks("two").contains { $0.contains("HOME has no value here") })
    }

    @Test("outside quotes a variable is split into words")
    func split() throws {
        let text = """
            OPTIONS=" -e A=1  -e B=2 "
            NONE=
            docker run --name web $NONE $OPTIONS -e "C=$OPTIONS" -v ~/x:/x img a$OPTIONS
            """
        let web = try imported(text)["web"]
        #expect(web.environment == ["A": "1", "B": "2", "C": " -e A=1  -e B=2 "])
        #expect(web.exec == ["a", "-e", "A=1", "-e", "B=2"] && web.container?.volumes == ["/home/me/x:/x"])
    }

    @Test(
        "what only a shell can expand is refused with its column",
        arguments: [
            ("-e A=$1 img", "$1 is known only when the script runs (column 17)"), ("-e A=${B:0:3} img", "(column 17)"),
            ("-e A=${B%%x} img", "needs a shell (column 17)"), ("-e A=$'b' img", "$' needs a shell (column 17)"),
            ("-e A={b,c} img", "braces"), ("-v /{1..3}:/x img", "braces"), ("-v /a/*:/b img", "* makes it a pattern"),
            ("-v /a?:/b img", "? makes it a pattern"), ("-v /[ab]:/b img", "[ makes it a pattern"),
            ("-v ~you/x:/x img", "another user"), ("-e A=$NO img", "the variable NO is not set here"),
            ("img:$NO", "the variable NO is not set here"), ("$NO img", "the variable NO is not set here"),
            ("-e A=$(id) img", "command of a shell"), ("-e A=${B img", "needs a shell"),
        ]
    )
    func refused(options: String, sentence: String) throws {
        let found = try imported("docker run \(options)\n")
        #expect(found.apps.isEmpty)
        #expect(found.result.programs[0].obstacle?.contains(sentence) == true, "\(found.result.programs)")
    }

    @Test("quotes, templates and files of redirections are no reason to refuse")
    func harmless() throws {
        let found = try imported(
            "docker run --name web -e 'A=*{a,b}$1' -e \"B=*~{a,b}\" -l f={{.ID}} img >$NO 2>&1 # $NO\n"
        )
        #expect(try found["web"].environment == ["A": "*{a,b}$1", "B": "*~{a,b}"])
        #expect(try found["web"].container?.labels == ["f": "{{.ID}}"])
    }

    @Test("a container that is started within a command of a shell is named")
    func within() throws {
        let found = try imported("ID=$(docker run -d img)\n")
        #expect(found.result.programs.first?.obstacle?.contains("within $(…)") == true)
    }

    @Test("variables that double each other are refused in a sentence")
    func large() throws {
        let lines = String(repeating: "A=$A$A\n", count: 40)
        let found = try imported("A=x\n\(lines)docker run -e \"X=$A\" img\n")
        #expect(found.apps.isEmpty && found.result.programs[0].obstacle?.contains("A is not known") == true)
        let line = "B=\"" + String(repeating: "x", count: 60_000) + "\"\ndocker run -e \"X="
        let wide = try imported(line + String(repeating: "$B", count: 30) + "\" img\n")
        #expect(wide.result.programs[0].obstacle?.contains("1 MiB") == true)
        let many = String(repeating: "docker run -e \"X=$B$B$B$B$B$B$B$B$B$B$B$B$B$B$B$B\" img >$B\n", count: 40)
        let text = line.replacing("docker run -e \"X=", with: "") + many
        let last = try Importer.read("/srv/app/run.sh", as: .dockerRun, in: tree(["run.sh": text])).programs.last
        #expect(last?.obstacle?.contains("4 MiB") == true)
    }
}
