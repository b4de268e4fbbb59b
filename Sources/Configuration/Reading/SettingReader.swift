// SPDX-License-Identifier: Apache-2.0

import Linux
import WireText

/// Reads `settings`.
enum SettingReader {
    /// The keys of an entry of `settings`.
    static let keys = [
        "type", "default", "title", "help", "restart", "identity", "writable", "min", "max", "max_length", "pattern",
        "values",
    ]
    /// Keys that are valid only for some types of settings, each with these types.
    private static let only: [String: [String]] = [
        "min": ["integer", "number", "duration", "size"], "max": ["integer", "number", "duration", "size"],
        "max_length": ["string", "secret"], "pattern": ["string", "secret"], "values": ["choice"],
    ]

    static func settings(_ context: Context, _ node: Node) -> [SettingDeclaration] {
        guard let members = Read.members(context, node) else { return [] }
        guard members.count <= SettingDeclaration.most else {
            context.error("an app has at most \(SettingDeclaration.most) settings", at: node.position)
            return []
        }
        return members.compactMap { member in
            let inner = context.at(member.key)
            if let problem = SettingDeclaration.problem(inName: member.key) {
                inner.error(problem, at: member.position)
                return nil
            }
            return setting(member.key, inner, member.node)
        }
    }

    private static func setting(_ name: String, _ context: Context, _ node: Node) -> SettingDeclaration? {
        guard let members = Read.members(context, node) else { return nil }
        guard let type = members.first(where: { $0.key == "type" }) else {
            context.error("type is missing: write type = \"string\" or another type", at: node.position)
            return nil
        }
        guard let word = Read.string(context.at("type"), type.node) else { return nil }
        guard SettingDeclaration.types.contains(word) else {
            let list = SettingDeclaration.types.map(quoted).joined(separator: ", ")
            let hint = context.hint(word, among: SettingDeclaration.types)
            context.at("type").error("\(quoted(word)) is not one of \(list)\(hint)", at: type.node.position)
            return nil
        }
        var nodes: [String: Node] = [:]
        for member in members {
            let inner = context.at(member.key)
            guard keys.contains(member.key) else {
                Read.unknown(inner, member, among: keys)
                continue
            }
            if let types = only[member.key], !types.contains(word) {
                inner.error("is only for the types \(types.joined(separator: ", "))", at: member.position)
                continue
            }
            nodes[member.key] = member.node
        }
        guard let kind = kind(word, context, node, nodes) else { return nil }
        var setting = SettingDeclaration(name, kind)
        func flag(_ key: String) -> Bool { nodes[key].flatMap { Read.boolean(context.at(key), $0) } ?? false }
        setting.restart = flag("restart")
        setting.identity = flag("identity")
        setting.writable = flag("writable")
        if let node = nodes["title"], let texts = TitleReader.read(context.at("title"), node, for: .title) {
            (setting.title, setting.titles) = texts
        }
        if let node = nodes["help"], let texts = TitleReader.read(context.at("help"), node, for: .help) {
            (setting.help, setting.helps) = texts
        }
        if let node = nodes["default"] { setting.defaultValue = defaultValue(setting, context.at("default"), node) }
        return setting
    }

    private static func defaultValue(_ setting: SettingDeclaration, _ context: Context, _ node: Node) -> String? {
        if setting.isSecret {
            context.error("a secret has no default: set it with ‘torpor settings’", at: node.position)
            return nil
        }
        let text: String
        switch (node.value, setting.kind) {
        case (.string(let some), .path): text = some.isEmpty ? some : Path.join(context.folder, some)
        case (.string(let some), .string), (.string(let some), .choice), (.string(let some), .duration),
            (.string(let some), .size):
            text = some
        case (.integer(let number), .integer), (.integer(let number), .number): text = "\(number)"
        case (.double(let number), .number): text = "\(number)"
        case (.boolean(let flag), .boolean): text = flag ? "true" : "false"
        default:
            let article = setting.kind.word == "integer" ? "an" : "a"
            return context.expected("\(article) \(setting.kind.word)", node)
        }
        do throws(SettingProblem) {
            return try setting.normal(text)
        } catch {
            context.error("the default \(error)", at: node.position)
            return nil
        }
    }

    private static func kind(
        _ word: String,
        _ context: Context,
        _ node: Node,
        _ nodes: [String: Node]
    ) -> SettingDeclaration.Kind? {
        func bound<T>(_ key: String, _ read: (Context, Node) -> T?) -> T? {
            nodes[key].flatMap { read(context.at(key), $0) }
        }
        func ordered<T: Comparable>(_ min: T, _ max: T) -> Bool {
            if min <= max { return true }
            context.error("min must not be more than max", at: node.position)
            return false
        }
        switch word {
        case "integer":
            let integer = Read.integer(Int64.min...Int64.max)
            let (min, max) = (bound("min", integer) ?? .min, bound("max", integer) ?? .max)
            return ordered(min, max) ? .integer(min: min, max: max) : nil
        case "number":
            let greatest = Double.greatestFiniteMagnitude
            let number = Read.number(-greatest...greatest)
            let (min, max) = (bound("min", number) ?? -greatest, bound("max", number) ?? greatest)
            return ordered(min, max) ? .number(min: min, max: max) : nil
        case "duration":
            let (min, max) = (bound("min", Read.duration) ?? .zero, bound("max", Read.duration) ?? Quantity.longest)
            return ordered(min, max) ? .duration(min: min, max: max) : nil
        case "size":
            func size(_ key: String, _ usual: UInt64) -> UInt64 { bound(key, Read.size).flatMap { $0 } ?? usual }
            let (min, max) = (size("min", 0), size("max", UInt64(Int64.max)))
            return ordered(min, max) ? .size(min: min, max: max) : nil
        case "boolean": return .boolean
        case "path": return .path
        case "choice":
            guard let node = nodes["values"] else {
                context.error("values is missing: write values = [\"one\", \"another\"]", at: node.position)
                return nil
            }
            guard let words = Read.texts(context.at("values"), node) else { return nil }
            let isShort = words.allSatisfy { $0.utf8.count <= 128 && !$0.utf8.contains { $0 < 0x20 || $0 == 0x7f } }
            guard (1...100).contains(words.count), Set(words.map { Array($0.utf8) }).count == words.count, isShort
            else {
                context.at("values").error(
                    "a choice has from 1 to 100 different words of at most 128 bytes, without control characters",
                    at: node.position
                )
                return nil
            }
            return .choice(words)
        default:
            let length = bound("max_length", Read.integer(1...SettingDeclaration.longestValue))
            let pattern: String? = bound("pattern") { Self.pattern($0, $1, maxLength: length) }
            return word == "secret"
                ? .secret(maxLength: length, pattern: pattern) : .string(maxLength: length, pattern: pattern)
        }
    }

    private static func pattern(_ context: Context, _ node: Node, maxLength: Int?) -> String? {
        guard let text = Read.text(context, node) else { return nil }
        guard text.utf8.count <= SettingDeclaration.longestPattern, let pattern = TextPattern(text) else {
            context.error(
                "\(quoted(text)) is not an extended regular expression (regex(7)) of at most "
                    + "\(SettingDeclaration.longestPattern) bytes without back-references and word boundaries, whose "
                    + "repetitions stand for at most \(TextPattern.most) characters",
                at: node.position
            )
            return nil
        }
        let steps = pattern.mostSteps(on: SettingDeclaration.longestBytes(maxLength))
        guard steps <= SettingDeclaration.mostSteps else {
            // Convert bytes to characters, each of which may take 4 bytes in UTF-8.
            let length = pattern.length(within: SettingDeclaration.mostSteps) / 4
            context.error(
                "to match a value with \(quoted(text)) may take \(steps) steps, more than "
                    + "\(SettingDeclaration.mostSteps): set max_length to at most \(length), or write fewer repetitions",
                at: node.position
            )
            return nil
        }
        return text
    }

    /// Reports an error if it could take too many steps to match all values of the app with their patterns.
    static func checkSteps(_ settings: [SettingDeclaration], _ context: Context, _ node: Node) {
        let steps = settings.reduce(0) { $0 + $1.mostSteps }
        guard steps > SettingDeclaration.mostStepsOfAll else { return }
        context.error(
            "to match all values of the app with their patterns may take \(steps) steps, more than "
                + "\(SettingDeclaration.mostStepsOfAll): set a smaller max_length, or write fewer or shorter patterns",
            at: node.position
        )
    }

    // MARK: Where settings stand

    /// Checks each `{settings.NAME}` in the command, the hooks, the environment and the language of the app.
    static func check(_ draft: AppDraft) {
        let app = draft.specification
        func check(_ key: String, _ texts: [String]) {
            // Few apps name a setting, and this is read for each of a thousand apps.
            var found: [String] = []
            for text in texts { found += SettingTemplate.names(in: text) }
            if found.isEmpty { return }
            for name in Set(found).sorted() {
                guard let setting = app.setting(name) else {
                    let hint = draft.hint(name, among: app.declaredSettings.map(\.name))
                    draft.error(key, "there is no setting \(quoted(name))" + hint)
                    continue
                }
                if setting.isSecret, key != "environment" {
                    draft.warning(
                        key,
                        "every user of the machine can read the secret \(name) in the list of processes: use environment, "
                            + "or the file that TORPOR_SETTINGS names"
                    )
                }
            }
        }
        check("exec", app.exec)
        check("before_start", app.beforeStart.flatMap(\.command))
        check("after_stop", app.afterStop.flatMap(\.command))
        check("on_failure", app.onFailure.flatMap(\.command))
        check("environment", Array(app.environment.values))
        check("language", app.presentation.language.map { [$0] } ?? [])
        if app.settingsFormat != .json, app.declaredSettings.isEmpty {
            draft.warning("settings_format", "does nothing without settings")
        }
    }

    /// Replaces the settings in an address by their default values. Returns nil after an error.
    static func address(
        _ text: String,
        _ settings: [SettingDeclaration],
        _ context: Context,
        _ node: Node
    ) -> String? {
        for name in SettingTemplate.names(in: text) {
            let setting = settings.first { $0.name.utf8.elementsEqual(name.utf8) }
            guard let setting else {
                let hint = context.hint(name, among: settings.map(\.name))
                context.error("there is no setting \(quoted(name))" + hint, at: node.position)
                return nil
            }
            guard !setting.isSecret else {
                context.error("an address cannot have a secret in it (\(name))", at: node.position)
                return nil
            }
            guard setting.defaultValue != nil else {
                context.error("the setting \(name) needs a default, because an address uses it", at: node.position)
                return nil
            }
        }
        return try? SettingTemplate.fill(text) { name in
            settings.first { $0.name.utf8.elementsEqual(name.utf8) }.flatMap { setting in
                setting.defaultValue.map { setting.value($0).text }
            }
        }
    }
}

extension SettingDeclaration: Written {
    /// The declaration on one line, for diffs.
    var written: String? {
        var parts = [kind.word]
        switch kind {
        case .string(let length, let pattern), .secret(let length, let pattern):
            if let length { parts.append("max_length \(length)") }
            if let pattern { parts.append("pattern \(pattern)") }
        case .integer(let min, let max):
            if min != .min { parts.append("min \(min)") }
            if max != .max { parts.append("max \(max)") }
        case .number(let min, let max): parts.append("min \(min) max \(max)")
        case .choice(let words): parts.append(words.joined(separator: " "))
        case .duration(let min, let max): parts.append("min \(Quantity.text(min)) max \(Quantity.text(max))")
        case .size(let min, let max): parts.append("min \(Write.size(min)) max \(Write.size(max))")
        case .boolean, .path: break
        }
        if let defaultValue { parts.append("default \(defaultValue)") }
        for (name, isSo) in [("restart", restart), ("identity", identity), ("writable", writable)] where isSo {
            parts.append(name)
        }
        if let title { parts.append("title \(title)") }
        for (language, text) in titles.sorted(by: { $0.key < $1.key }) { parts.append("title.\(language) \(text)") }
        if let help { parts.append("help \(help)") }
        for (language, text) in helps.sorted(by: { $0.key < $1.key }) { parts.append("help.\(language) \(text)") }
        return parts.joined(separator: ", ")
    }
}
