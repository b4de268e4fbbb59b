// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Linux
import Testing

/// A folder of files, and nothing else, at `/srv/app`.
func tree(
    _ files: [String: String],
    variables: [String: String] = [:],
    environment: String? = nil,
    hasPrograms: Bool = true
)
    -> SourceTree
{
    let paths = Dictionary(uniqueKeysWithValues: files.map { ("/srv/app/" + $0.key, $0.value) })
    var tree = SourceTree(
        read: { path in paths[path].map { Array($0.utf8) } },
        names: { folder in
            let names = paths.keys.filter { $0.hasPrefix(folder + "/") }.map { path in
                String(path.dropFirst(folder.count + 1).prefix { $0 != "/" })
            }
            return names.isEmpty ? nil : Set(names).sorted()
        },
        variables: variables,
        processors: 4,
        hostName: "box.example.org",
        environmentName: environment
    )
    tree.hasPrograms = hasPrograms
    return tree
}

/// A machine that knows every user, and reads nothing but what is put into it.
func machine() -> ConfigurationSystem {
    var system = ConfigurationSystem.live
    system.read = { _ in .failure(.missing) }
    system.names = { _ in nil }
    system.userID = { $0 == "nobody-here" ? nil : 33 }
    system.groupID = { _ in 33 }
    system.effectiveUserID = 0
    system.effectiveGroupID = 0
    system.workingDirectory = "/srv/app"
    return system
}

/// What a file becomes, with its apps as Torpor reads them.
struct Imported {
    var result: ImportedConfiguration
    var apps: [String: AppSpecification] = [:]

    init(
        _ name: String,
        _ files: [String: String],
        kind: SourceKind? = nil,
        variables: [String: String] = [:],
        environment: String? = nil
    ) throws {
        try self.init(name, in: tree(files, variables: variables, environment: environment), kind: kind)
    }

    init(_ name: String, in tree: SourceTree, kind: SourceKind? = nil) throws {
        try self.init([name], in: tree, kind: kind)
    }

    init(_ names: [String], in tree: SourceTree, kind: SourceKind? = nil) throws {
        result = try Importer.read(names.map { $0.isEmpty ? "/srv/app" : "/srv/app/" + $0 }, as: kind, in: tree)
        result.validate(at: "/srv/app/torpor.toml", system: machine())
        var system = machine()
        let text = Array(result.toml.utf8)
        system.read = { _ in .success(text) }
        let configuration = try ConfigurationLoader.load(path: "/srv/app/torpor.toml", environment: [:], system: system)
            .get()
        for app in configuration.apps { apps[app.name] = app }
    }

    init(_ name: String, _ text: String, kind: SourceKind? = nil, variables: [String: String] = [:]) throws {
        try self.init(name, [name: text], kind: kind, variables: variables)
    }

    subscript(name: String) -> AppSpecification {
        get throws { try #require(apps[name], "\(apps.keys.sorted())\n\(result.toml)") }
    }

    /// The sentences about a program.
    func remarks(_ name: String) -> [String] {
        result.programs.first { $0.name == name }?.remarks.map(\.text) ?? []
    }
}

/// Why a text cannot be imported at all.
func refusal(_ name: String, _ text: String, kind: SourceKind? = nil) -> String? {
    do throws(ImportError) {
        _ = try Importer.read("/srv/app/" + name, as: kind, in: tree([name: text]))
        return nil
    } catch {
        return error.description
    }
}

/// The first two blocks of code with a language of a section of docs/import.md: a source, and what becomes of it.
func documented(_ section: String) throws -> (source: String, toml: String) {
    let page = try File.readString("docs/import.md")
    var blocks: [String] = []
    var (isSection, block) = (false, String?.none)
    for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
        if line.hasPrefix("## ") { isSection = line == "## \(section)" }
        guard isSection else { continue }
        if let done = block {
            block = line == "```" ? nil : done + line + "\n"
            if block == nil { blocks.append(done) }
        } else if line.hasPrefix("```") {
            block = ""
        }
    }
    try #require(blocks.count >= 2)
    return (blocks[0], blocks[1])
}

/// The configuration without its comments and the empty lines around them.
func plain(_ toml: String) -> String {
    let lines = toml.split(separator: "\n", omittingEmptySubsequences: false).filter { !$0.hasPrefix("#") }
    return lines.drop { $0.isEmpty }.joined(separator: "\n")
}
