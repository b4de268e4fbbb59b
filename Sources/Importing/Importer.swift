/// Reads other supervisors' configurations.
public enum Importer {
    /// Reads a file or folder.
    ///
    /// - Parameters:
    ///   - path: the file or folder; absolute, since it is where relative paths begin.
    ///   - kind: whose configuration it is; nil to tell it from its name and text.
    ///   - tree: what may be read.
    public static func read(
        _ path: String,
        as kind: SourceKind? = nil,
        in tree: SourceTree
    ) throws(ImportError) -> ImportedConfiguration {
        if tree.names(path) != nil { return try readFolder(path, as: kind, tree) }
        guard let text = tree.text(path) else {
            throw ImportError("\(path) cannot be read: name a file or folder that is there")
        }
        let name = SourceTree.lastPart(path)
        if name.hasSuffix(".js") || name.hasSuffix(".cjs") || name.hasSuffix(".mjs") || name.hasSuffix(".ts") {
            throw ImportError(
                "\(path) is a program, and is not run: write what it makes as JSON, as in "
                    + "‘node -p \"JSON.stringify(require('./\(name)'))\" >ecosystem.json’, and import that"
            )
        }
        guard let kind = kind ?? SourceKind.ofFile(path, text) else {
            throw ImportError(
                "\(path) looks like no configuration that can be imported: say with --from what it is ("
                    + SourceKind.allCases.map(\.rawValue).joined(separator: ", ") + ")"
            )
        }
        return try read(path, text, kind, tree)
    }

    private static func read(
        _ path: String,
        _ text: String,
        _ kind: SourceKind,
        _ tree: SourceTree
    ) throws(ImportError) -> ImportedConfiguration {
        var result = ImportedConfiguration(kind: kind, source: path)
        switch kind {
        case .procfile: Procfile.read(text, tree, into: &result)
        case .supervisord: try Supervisord.read(text, tree, into: &result)
        case .compose: try Compose.read(text, tree, into: &result)
        case .pm2: try PM2.read(text, tree, into: &result)
        case .systemd: try Systemd.read([path], tree, into: &result)
        case .s6, .runit:
            throw ImportError("\(path) is a file: \(kind.title) are folders, name the one that they are in")
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
                ServiceFolders.read(path, tree, into: &result)
                return try finished(result)
            case .systemd:
                var result = ImportedConfiguration(kind: kind, source: path)
                let units = (tree.names(path) ?? []).filter { name in
                    SourceKind.unitSuffixes.contains { name.hasSuffix($0) }
                }
                try Systemd.read(units.map { path + "/" + $0 }, tree, into: &result)
                return try finished(result)
            case .procfile, .supervisord, .compose, .pm2:
                let files = files(in: path, tree).filter { $0.kind == kind }
                guard let file = files.first else {
                    throw ImportError("\(path) is a folder: name the file in it that is \(kind.title)")
                }
                return try read(file.path, as: kind, in: tree)
            }
        }
        guard let file = found.first else {
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

    /// What a folder has that can be imported, by the usual names.
    public static func files(in folder: String, _ tree: SourceTree) -> [(path: String, kind: SourceKind)] {
        let usual: [(name: String, kind: SourceKind)] = [
            ("Procfile", .procfile), ("Procfile.dev", .procfile), ("supervisord.conf", .supervisord),
            ("supervisor.conf", .supervisord), ("supervisord.ini", .supervisord), ("compose.yaml", .compose),
            ("compose.yml", .compose), ("docker-compose.yaml", .compose), ("docker-compose.yml", .compose),
            ("ecosystem.config.json", .pm2), ("ecosystem.json", .pm2), ("ecosystem.config.yml", .pm2),
            ("ecosystem.config.yaml", .pm2), ("pm2.json", .pm2), ("process.json", .pm2), ("process.yml", .pm2),
        ]
        return usual.filter { tree.read(folder + "/" + $0.name) != nil }.map { (folder + "/" + $0.name, $0.kind) }
    }

    /// Configurations in a folder that are programs, by the usual names: nothing reads them, and ``read(_:as:in:)`` says
    /// what to do.
    public static func programs(in folder: String, _ tree: SourceTree) -> [String] {
        ["ecosystem.config", "pm2.config"].flatMap { name in
            ["js", "cjs", "mjs", "ts"].map { "\(folder)/\(name).\($0)" }
        }.filter { tree.read($0) != nil }
    }

    /// What a folder is, by what is in it; nil where it is nothing that can be imported.
    public static func kind(ofFolder path: String, _ tree: SourceTree) -> SourceKind? {
        tree.names(path) == nil ? nil : SourceKind.ofFolder(path, tree)
    }

    private static func finished(_ configuration: ImportedConfiguration) throws(ImportError) -> ImportedConfiguration {
        var result = configuration
        guard !result.programs.isEmpty else {
            throw ImportError(
                "\(result.source) names no program: it is read as \(result.kind.title); is that what it is?"
            )
        }
        Names.assign(&result)
        return result
    }
}

/// Gives apps names that are valid and each one's own, and looks up whom they mean.
enum Names {
    static func assign(_ result: inout ImportedConfiguration) {
        var taken: Set<String> = []
        // What is no app must not take a name from one that is.
        let order =
            result.programs.indices.filter { result.programs[$0].isTranslated }
            + result.programs.indices.filter { !result.programs[$0].isTranslated }
        for index in order {
            let name = result.programs[index].name
            let valid = valid(name)
            var unique = valid
            var number = 2
            while !taken.insert(unique).inserted {
                unique = "\(valid.prefix(58))-\(number)"
                number += 1
            }
            result.programs[index].appName = unique
            if unique != name, result.programs[index].isTranslated {
                result.programs[index].remark(
                    valid == name ? "was called \(quoted(name)), as another one is" : "was called \(quoted(name))"
                )
            }
        }
        lookUp(&result)
    }

    /// Letters, digits, `-`, `_` and `.`, not beginning with `.` or `-`, 64 at most.
    static func valid(_ name: String) -> String {
        var result = ""
        for scalar in name.unicodeScalars {
            let isGood =
                scalar.isASCII
                && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
                    || "-_.".unicodeScalars.contains(scalar))
            if isGood {
                result.unicodeScalars.append(scalar)
            } else if !result.hasSuffix("-") {
                result += "-"
            }
        }
        while result.hasPrefix(".") || result.hasPrefix("-") { result.removeFirst() }
        while result.hasSuffix("-") { result.removeLast() }
        return result.isEmpty ? "app" : String(result.prefix(64))
    }

    /// Turns the names of `requires` and `after` into those of apps.
    private static func lookUp(_ result: inout ImportedConfiguration) {
        var apps: [String: [String]] = [:]
        for program in result.programs where program.isTranslated {
            apps[program.name, default: []].append(program.appName)
        }
        for index in result.programs.indices {
            let program = result.programs[index]
            guard program.isTranslated else { continue }
            for name in program.requires where apps[name] == nil {
                result.programs[index].remark("needs \(quoted(name)), which is no app here: it must be there already")
            }
            func names(_ key: String, _ written: [String]) {
                var seen: Set<String> = [program.appName]
                let found = written.flatMap { apps[$0] ?? [] }.filter { seen.insert($0).inserted }
                if !found.isEmpty { result.programs[index].keys[key] = .strings(found) }
            }
            names("requires", program.requires)
            names("after", program.after.filter { !program.requires.contains($0) })
        }
    }
}
