import Foundation
import Linux
import Testing

@Suite("The pages of docs/ that can be followed", .serialized) struct PagesTests {
    /// Found, and not listed: a new one is run too.
    static let names: [String] = {
        let howTos = (try? FileManager.default.contentsOfDirectory(atPath: Page.folder + "/howto")) ?? []
        return ["tutorial.md"] + howTos.filter { $0.hasSuffix(".md") }.sorted().map { "howto/" + $0 }
    }()

    @Test("Their commands do what stands there", .enabled(if: PageRun.surroundings != nil), arguments: names)
    func followed(name: String) throws {
        let page = try Page(name)
        let commands = page.steps.count { if case .command = $0 { true } else { false } }
        #expect(commands > 5, "there is hardly anything to follow")
        let problems = try PageRun(page: page).problems()
        #expect(problems.isEmpty, "\(problems.joined(separator: "\n\n"))")
    }

    @Test("There is one of each kind") func count() { #expect(Self.names.count >= 5) }

    @Test("A link of docs/ leads to a page and a heading that are there") func links() throws {
        let pages = FileManager.default.enumerator(atPath: Page.folder)?.compactMap { $0 as? String } ?? []
        var dead: [String] = []
        for name in pages where name.hasSuffix(".md") {
            let path = Page.folder + "/" + name
            for match in try String(contentsOfFile: path, encoding: .utf8).matches(of: /\]\(([^)\s]+)\)/) {
                let parts = match.1.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
                if match.1.contains("://") { continue }
                let base = (path as NSString).deletingLastPathComponent
                let target = parts[0].isEmpty ? path : ((base + "/" + parts[0]) as NSString).standardizingPath
                guard FileManager.default.fileExists(atPath: target) else {
                    dead.append("\(name): \(match.1)")
                    continue
                }
                guard parts.count == 2 else { continue }
                let headings = try String(contentsOfFile: target, encoding: .utf8).split(separator: "\n")
                    .filter { $0.hasPrefix("#") }.map { Self.anchor($0) }
                if !headings.contains(String(parts[1])) { dead.append("\(name): \(match.1)") }
            }
        }
        #expect(pages.count > 20 && dead.isEmpty, "\(dead.joined(separator: "\n"))")
    }

    private static func anchor(_ heading: Substring) -> String {
        heading.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces).lowercased()
            .filter { $0.isLetter || $0.isNumber || "-_ ".contains($0) }.replacingOccurrences(of: " ", with: "-")
    }

    // MARK: That it can fail

    @Test("What was printed otherwise is seen, and numbers are not")
    func agreement() {
        #expect(Page.agrees(["web: active (pid 12)"], with: ["web: active (pid 4711)"]))
        #expect(!Page.agrees(["web: failed (pid 12)"], with: ["web: active (pid 4711)"]))
        #expect(Page.agrees(["a  17.5 MiB  60ms", "b"], with: ["a   8.0 GiB  1m30s", "…"]))
        #expect(Page.agrees(["x", "y", "last"], with: ["…", "last"]) && Page.agrees([], with: ["…"]))
        #expect(!Page.agrees(["x", "y"], with: ["…", "last"]) && !Page.agrees(["more"], with: []))
        #expect(!Page.agrees([], with: ["something"]))
    }

    @Test(
        "A command that fails, prints something else or leaves a process is a problem",
        .enabled(if: PageRun.surroundings != nil)
    )
    func failing() throws {
        let text = """
            ```console
            $ false
            $ echo one
            two
            $ sleep 1000 & disown
            ```
            """
        let problems = try PageRun(page: Page(text: text)).problems()
        #expect(problems.contains { $0.contains("$ false: status 1") })
        #expect(problems.contains { $0.contains("$ echo one: printed\none") })
        #expect(problems.contains { $0.contains("1 processes are left") })
    }
}
