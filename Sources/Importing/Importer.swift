// SPDX-License-Identifier: Apache-2.0

/// Imports configurations of other supervisors.
public enum Importer {
    /// Imports a file or folder.
    ///
    /// - Parameters:
    ///   - path: the absolute path of the file or folder, from which relative paths start.
    ///   - kind: the kind of configuration; nil to detect it from the file's name and text.
    ///   - tree: the files and variables that may be read.
    public static func read(
        _ path: String,
        as kind: SourceKind? = nil,
        in tree: SourceTree
    ) throws(ImportError) -> ImportedConfiguration {
        if tree.names(path) != nil { return try readFolder(path, as: kind, tree) }
        guard let text = tree.text(path) else {
            throw ImportError("\(path) cannot be read: name an existing file or folder")
        }
        let name = SourceTree.lastPart(path)
        if name.hasSuffix(".js") || name.hasSuffix(".cjs") || name.hasSuffix(".mjs") || name.hasSuffix(".ts") {
            throw program(path)
        }
        guard let kind = kind ?? SourceKind.ofFile(path, text) else { throw unknown(path) }
        return try read(path, text, kind, tree)
    }

    /// Imports files that belong together: units, or compose files, which are merged over the first one.
    ///
    /// - Parameters:
    ///   - paths: the absolute paths of the files, or of one file or folder.
    ///   - kind: the kind of configuration; nil to detect it from the first file's name and text.
    ///   - tree: the files and variables that may be read.
    public static func read(
        _ paths: [String],
        as kind: SourceKind? = nil,
        in tree: SourceTree
    ) throws(ImportError) -> ImportedConfiguration {
        guard let first = paths.first else { throw ImportError("there is nothing to import: name a file or folder") }
        guard paths.count > 1 else { return try read(first, as: kind, in: tree) }
        var files: [(path: String, text: String)] = []
        for path in paths {
            guard let text = tree.text(path) else {
                throw ImportError(
                    tree.names(path) == nil
                        ? "\(path) cannot be read: name existing files" : "\(path) is a folder: import it by itself"
                )
            }
            files.append((path, text))
        }
        let kinds = files.map { SourceKind.ofFile($0.path, $0.text) }
        guard let kind = kind ?? kinds.first.flatMap({ $0 }) else { throw unknown(first) }
        for (path, other) in zip(paths, kinds) {
            guard let other, other != kind else { continue }
            throw ImportError("\(path) is \(other.title), but \(first) is \(kind.title): import them one by one")
        }
        var result = ImportedConfiguration(kind: kind, source: first)
        result.others = Array(paths.dropFirst())
        switch kind {
        case .compose:
            try Compose.read(files[0].text, others: Array(files.dropFirst()), tree, into: &result)
        case .systemd: try Systemd.read(paths, tree, into: &result)
        case .quadlet: try Quadlet.read(paths, tree, into: &result)
        case .procfile, .supervisord, .pm2, .s6, .runit, .dockerRun:
            throw ImportError("\(kind.title) is imported by itself: name one file or folder")
        }
        return try finished(result)
    }

    /// Imports a command line of docker run or podman run.
    ///
    /// - Parameters:
    ///   - command: its words, or a single text with the whole command line.
    ///   - folder: the folder from which relative paths start.
    public static func read(
        command: [String],
        in folder: String,
        _ tree: SourceTree
    ) throws(ImportError) -> ImportedConfiguration {
        var result = ImportedConfiguration(kind: .dockerRun, source: "the command line")
        let text = command.count == 1 ? command[0] : command.map(ShellWords.quote).joined(separator: " ")
        try DockerRun.read(text, in: folder, tree, into: &result)
        return try finished(result)
    }

    private static func unknown(_ path: String) -> ImportError {
        ImportError(
            "\(path) does not look like a configuration that can be imported: say what it is with --from ("
                + SourceKind.allCases.map(\.rawValue).joined(separator: ", ") + ")"
        )
    }

    /// The error for a configuration that is a JavaScript program, which only node can evaluate.
    static func program(_ path: String) -> ImportError {
        let name = SourceTree.lastPart(path)
        // node accepts a file as JavaScript only if it has one of these extensions, so suggest such a name.
        let module = name.hasSuffix("js") || name.hasSuffix(".ts") ? name : "ecosystem.config.js"
        return ImportError(
            "\(path) is a program, which is not run: write its result as JSON, as in "
                + "‘node -e \"import('./\(module)').then(m => console.log(JSON.stringify(m.default)))\" >ecosystem.json’, "
                + "and import that"
        )
    }

    private static func read(
        _ path: String,
        _ text: String,
        _ kind: SourceKind,
        _ tree: SourceTree
    ) throws(ImportError) -> ImportedConfiguration {
        var result = ImportedConfiguration(kind: kind, source: path)
        switch kind {
        case .procfile: try Procfile.read(text, tree, into: &result)
        case .supervisord: try Supervisord.read(text, in: SourceTree.folder(path), tree, into: &result)
        case .compose:
            if let others = Compose.listed(after: path, tree, &result) {
                result.others = others.map(\.path)
                try Compose.read(text, others: others, tree, into: &result)
                break
            }
            let override = Compose.override(of: path, tree)
            if let override {
                result.others = [override.path]
                result.remark(
                    "\(SourceTree.lastPart(override.path)) beside it is merged over it, as by compose: name the files "
                        + "to choose which are read."
                )
            }
            try Compose.read(text, others: override.map { [$0] } ?? [], tree, into: &result)
        case .pm2: try PM2.read(text, tree, into: &result)
        case .systemd: try Systemd.read([path], tree, into: &result)
        case .quadlet: try Quadlet.read([path], tree, into: &result)
        case .dockerRun: try DockerRun.read(text, in: SourceTree.folder(path), tree, into: &result)
        case .s6, .runit:
            throw ImportError("\(path) is a file, but \(kind.title) are folders: name the folder that they are in")
        }
        return try finished(result)
    }

    private static func readFolder(
        _ path: String,
        as kind: SourceKind?,
        _ tree: SourceTree
    ) throws(ImportError) -> ImportedConfiguration {
        let found = kind == nil ? files(in: path, tree) : []
        if let kind = kind ?? (found.isEmpty ? SourceKind.ofFolder(path, tree) : nil) {
            switch kind {
            case .s6, .runit:
                var result = ImportedConfiguration(kind: kind, source: path)
                try ServiceFolders.read(path, tree, into: &result)
                return try finished(result)
            case .systemd:
                var result = ImportedConfiguration(kind: kind, source: path)
                let units = (tree.names(path) ?? []).filter { name in
                    SourceKind.unitSuffixes.contains { name.hasSuffix($0) }
                }
                let others = (tree.names(path) ?? []).filter { name in
                    SourceKind.otherUnitSuffixes.contains { name.hasSuffix($0) }
                }
                if !others.isEmpty {
                    let verb = others.count > 1 ? "are" : "is"
                    result.remark("\(LeftOutKeys.list(others)) \(verb) left out: Torpor has only apps.")
                }
                try Systemd.read(units.map { path + "/" + $0 }, tree, into: &result)
                return try finished(result)
            case .quadlet:
                var result = ImportedConfiguration(kind: kind, source: path)
                let suffixes = Quadlet.suffixes + [".timer"]
                let units = (tree.names(path) ?? []).filter { name in suffixes.contains { name.hasSuffix($0) } }
                try Quadlet.read(units.map { path + "/" + $0 }, tree, into: &result)
                return try finished(result)
            case .procfile, .supervisord, .compose, .pm2, .dockerRun:
                let files = files(in: path, tree).filter { $0.kind == kind }
                guard let file = files.first else {
                    if kind == .supervisord, let files = try supervisordFiles(path, tree) { return files }
                    throw ImportError("\(path) is a folder: name the file in it that is \(kind.title)")
                }
                return try read(file.path, as: kind, in: tree)
            }
        }
        guard let file = found.first else {
            if let files = try supervisordFiles(path, tree) { return files }
            throw ImportError(
                "there is nothing in \(path) that can be imported: name a file, or say what it is with --from"
            )
        }
        guard found.count == 1 else {
            let names = found.map { SourceTree.lastPart($0.path) }.joined(separator: ", ")
            throw ImportError("\(path) has \(names): name one of them")
        }
        return try read(file.path, as: file.kind, in: tree)
    }

    /// Imports a folder of files that the supervisord.conf of another folder includes, such as /etc/supervisor/conf.d.
    /// Nil if the folder contains no such files.
    private static func supervisordFiles(
        _ path: String,
        _ tree: SourceTree
    ) throws(ImportError) -> ImportedConfiguration? {
        let patterns = [".conf", ".ini"].filter { suffix in
            (tree.names(path) ?? []).contains { name in
                name.hasSuffix(suffix)
                    && tree.text(path + "/" + name).flatMap { SourceKind.ofFile(name, $0) } == .supervisord
            }
        }
        guard !patterns.isEmpty else { return nil }
        var result = ImportedConfiguration(kind: .supervisord, source: path)
        let include = "[include]\nfiles = " + patterns.map { "*" + $0 }.joined(separator: " ")
        try Supervisord.read(include, in: path, tree, into: &result)
        SupervisordSections.notRead(SourceTree.folder(path) + "/supervisord.conf", tree, &result)
        return try finished(result)
    }

    /// The files in a folder that can be imported, recognised by their usual names.
    public static func files(in folder: String, _ tree: SourceTree) -> [(path: String, kind: SourceKind)] {
        let usual: [(name: String, kind: SourceKind)] = [
            ("Procfile", .procfile), ("Procfile.dev", .procfile), ("supervisord.conf", .supervisord),
            ("supervisor.conf", .supervisord), ("supervisord.ini", .supervisord), ("compose.yaml", .compose),
            ("compose.yml", .compose), ("docker-compose.yaml", .compose), ("docker-compose.yml", .compose),
            ("ecosystem.config.json", .pm2), ("ecosystem.json", .pm2), ("ecosystem.config.yml", .pm2),
            ("ecosystem.config.yaml", .pm2), ("pm2.json", .pm2), ("process.json", .pm2), ("process.yml", .pm2),
            ("dump.pm2", .pm2),
        ]
        return usual.filter { tree.read(folder + "/" + $0.name) != nil }.map { (folder + "/" + $0.name, $0.kind) }
    }

    /// The files in a folder that are configurations in the form of JavaScript programs, recognised by their usual
    /// names. They cannot be imported directly: ``read(_:as:in:)`` throws an error that says how to convert them.
    public static func programs(in folder: String, _ tree: SourceTree) -> [String] {
        ["ecosystem.config", "pm2.config"].flatMap { name in
            ["js", "cjs", "mjs", "ts"].map { "\(folder)/\(name).\($0)" }
        }.filter { tree.read($0) != nil }
    }

    /// The kind of configuration in a folder; nil if the folder contains nothing that can be imported.
    public static func kind(ofFolder path: String, _ tree: SourceTree) -> SourceKind? {
        tree.names(path) == nil ? nil : SourceKind.ofFolder(path, tree)
    }

    /// The kind of supervisor whose configuration a file contains. Nil if it is unknown, or if the file is named like a
    /// configuration of Torpor.
    public static func kind(ofFile path: String, _ tree: SourceTree) -> SourceKind? {
        guard !path.hasSuffix(".toml"), let text = tree.text(path) else { return nil }
        return SourceKind.ofFile(path, text)
    }

    private static func finished(_ configuration: ImportedConfiguration) throws(ImportError) -> ImportedConfiguration {
        var result = configuration
        guard !result.programs.isEmpty else {
            // If there is no program, the most helpful error says what the source contains instead.
            throw ImportError(
                "\(result.source) names no program: "
                    + (result.doubts.first
                        ?? "it was read as \(result.kind.title); if that is wrong, say what it is with --from")
            )
        }
        result.keepPercents()
        Names.assign(&result)
        ContainerNames.assign(&result)
        return result
    }
}
