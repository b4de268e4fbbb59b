// SPDX-License-Identifier: Apache-2.0

import Linux
import WireText

/// The help pages that the package has installed. If the program is not installed, the pages in the source tree from
/// which it was built.
struct HelpPages {
    /// A help page in the folder.
    struct Page {
        /// The path relative to the folder, without `.md`, such as `howto/sandbox` or `man/torpor.toml.5`.
        let name: String
        /// The whole path of the file.
        let path: String

        /// The name without the subfolder and the manual's section, such as `sandbox` or `torpor.toml`.
        var title: String {
            let last = name.split(separator: "/").last.map(String.init) ?? name
            guard isManual, last.dropLast().hasSuffix("."), last.last?.isNumber == true else { return last }
            return String(last.dropLast(2))
        }

        /// Whether this is a manual page, whose name ends with the number of its section.
        var isManual: Bool { name.hasPrefix("man/") }
    }

    /// The folder that was searched for pages, even if it does not exist.
    let folder: String
    /// All pages: those of the folder itself first, then those of its subfolders.
    let pages: [Page]

    /// Limits for reading, so that a wrong folder does not take long: the number of names, the bytes of one page, and
    /// the bytes of all pages together.
    private static let mostNames = 1000
    private static let mostBytes = 1 << 20
    private static let mostOfAll = 8 << 20

    /// Finds this program's pages.
    init() {
        let folder = Self.found()
        var left = Self.mostNames
        var found: [Page] = []
        let names = Self.names(folder, &left)
        for inner in [""] + names.filter({ $0 != "examples" && Self.kind(folder, $0) == .directory }) {
            let prefix = inner.isEmpty ? "" : inner + "/"
            for name in Self.names(folder + "/" + inner, &left) where name.hasSuffix(".md") {
                // Skip symlinks, because they may lead out of the folder.
                guard Self.kind(folder, prefix + name) == .regular else { continue }
                let path = folder + "/" + prefix + name
                found.append(Page(name: prefix + name.dropLast(3), path: path))
            }
        }
        (self.folder, pages) = (folder, found)
    }

    /// Finds a page by a name such as `sandbox`, `howto/sandbox`, `torpor.toml` or `torpor.toml(5)`.
    func page(_ name: String) -> Page? {
        var name = name.lowercased()
        if name.hasSuffix(".md") { name.removeLast(3) }
        if let page = pages.first(where: { $0.name.lowercased() == name }) { return page }
        return pages.first { page in
            let title = page.title.lowercased()
            guard page.isManual, let section = page.name.last else { return title == name }
            return [title, "\(title).\(section)", "\(title)(\(section))"].contains(name)
        }
    }

    /// Calls `body` with each page and its text, until ``mostOfAll`` bytes are read.
    func each(_ body: (Page, String) -> Void) {
        var left = Self.mostOfAll
        for page in pages {
            guard let text = Self.text(of: page, limit: min(left, Self.mostBytes)) else { continue }
            left -= text.utf8.count
            body(page, text)
        }
    }

    /// The text of a page; nil if it cannot be read.
    static func text(of page: Page, limit: Int = mostBytes) -> String? {
        try? File.open(page.path, [.read, .nonBlocking, .noFollow]).withRaw { raw throws(Errno) -> String? in
            guard try File.status(descriptor: raw).kind == .regular else { return nil }
            return String(wire: try File.read(descriptor: raw, limit: limit))
        }
    }

    // MARK: The folder

    /// The folder of the pages: `share/doc/torpor` beside the `bin` of an installed program, or `docs` in the source
    /// tree that contains the program.
    private static func found() -> String {
        let installed = "/usr/share/doc/torpor"
        guard let program = OwnProgram.path else { return installed }
        var parts = program.split(separator: "/").dropLast()
        if parts.last == "bin" { return path(parts.dropLast()) + "/share/doc/torpor" }
        while !parts.isEmpty {
            let folder = path(parts)
            if File.exists(folder + "/Package.swift"), File.exists(folder + "/docs") { return folder + "/docs" }
            parts.removeLast()
        }
        return installed
    }

    private static func path(_ parts: some Collection<Substring>) -> String {
        parts.isEmpty ? "" : "/" + parts.joined(separator: "/")
    }

    private static func names(_ folder: String, _ left: inout Int) -> [String] {
        var names: [String] = []
        var rest = left
        try? File.eachName(in: folder) { name in
            names.append(String(terminatedWire: name))
            rest -= 1
            return rest > 0
        }
        left = max(rest, 0)
        return names.sorted()
    }

    private static func kind(_ folder: String, _ name: String) -> FileStatus.Kind? {
        try? File.kind(folder + "/" + name)
    }
}
