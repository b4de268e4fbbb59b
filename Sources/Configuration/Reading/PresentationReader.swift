// SPDX-License-Identifier: Apache-2.0

/// Reads `icon`.
enum IconReader {
    /// The sizes of icons that are allowed, in pixels, as in icon themes.
    private static let sizes = 16...1024

    static func read(_ context: Context, _ node: Node, into presentation: inout AppPresentation) {
        guard case .table(let members) = node.value else {
            guard case .string = node.value else {
                let expected = "a path, or a table of paths with the key default"
                return context.error("expected \(expected), found \(node.kind)", at: node.position)
            }
            guard let path = Read.path(context, node) else { return }
            (presentation.icon, presentation.icons) = (path, [:])
            return
        }
        var icon: String?
        var icons: [String: String] = [:]
        for member in members {
            let inner = context.at(member.key)
            guard let path = Read.path(inner, member.node) else { continue }
            switch member.key {
            case "default": icon = path
            case "dark": icons["dark"] = path
            default:
                guard let size = Int(member.key), sizes.contains(size), String(size) == member.key else {
                    let range = "from \(sizes.lowerBound) to \(sizes.upperBound)"
                    inner.error("must be \"default\", \"dark\", or a size in pixels \(range)", at: member.position)
                    continue
                }
                icons[member.key] = path
            }
        }
        guard icon != nil || members.contains(where: { $0.key == "default" }) else {
            return context.error("needs the key default", at: node.position)
        }
        (presentation.icon, presentation.icons) = (icon, icons)
    }
}

/// Reads `categories`, which are names from freedesktop.org's Desktop Menu Specification 1.1.
enum CategoryReader {
    /// The categories that any program may use. Categories that are reserved for parts of a desktop, such as
    /// `TrayIcon`, are not included.
    static let known: [String] = [
        // Main categories.
        "AudioVideo", "Audio", "Video", "Development", "Education", "Game", "Graphics", "Network", "Office", "Science",
        "Settings", "System", "Utility",
        // Additional categories.
        "2DGraphics", "3DGraphics", "Accessibility", "ActionGame", "Adult", "AdventureGame", "Amusement", "ArcadeGame",
        "Archiving", "Art", "ArtificialIntelligence", "Astronomy", "AudioVideoEditing", "Biology", "BlocksGame",
        "BoardGame", "Building", "Calculator", "Calendar", "CardGame", "Chart", "Chat", "Chemistry", "Clock",
        "Compression", "ComputerScience", "ConsoleOnly", "Construction", "ContactManagement", "Core",
        "DataVisualization",
        "Database", "Debugger", "DesktopSettings", "Dialup", "Dictionary", "DiscBurning", "Documentation", "Economy",
        "Electricity", "Electronics", "Email", "Emulator", "Engineering", "Feed", "FileManager", "FileTools",
        "FileTransfer", "Filesystem", "Finance", "FlowChart", "GNOME", "GTK", "GUIDesigner", "Geography", "Geology",
        "Geoscience", "HamRadio", "HardwareSettings", "History", "Humanities", "IDE", "IRCClient", "ImageProcessing",
        "InstantMessaging", "Java", "KDE", "KidsGame", "Languages", "Literature", "LogicGame", "Maps", "Math",
        "MedicalSoftware", "Midi", "Mixer", "Monitor", "Motif", "Music", "News", "NumericalAnalysis", "OCR", "P2P",
        "PDA",
        "PackageManager", "ParallelComputing", "Photography", "Physics", "Player", "Presentation", "Printing",
        "Profiling", "ProjectManagement", "Publishing", "Qt", "RasterGraphics", "Recorder", "RemoteAccess",
        "RevisionControl", "Robotics", "RolePlaying", "Scanning", "Security", "Sequencer", "Shooter", "Simulation",
        "Spirituality", "Sports", "SportsGame", "Spreadsheet", "StrategyGame", "TV", "Telephony", "TelephonyTools",
        "TerminalEmulator", "TextEditor", "TextTools", "Translation", "Tuner", "VectorGraphics", "VideoConference",
        "Viewer", "WebBrowser", "WebDevelopment", "WordProcessor", "XFCE",
    ]
    /// The maximum number of entries in `categories`.
    private static let most = 16

    @Sendable static func categories(_ context: Context, _ node: Node) -> [String]? {
        let names = Read.elements(context, node, of: "strings") { context, node -> String? in
            guard let text = Read.text(context, node) else { return nil }
            let isOwn = text.wholeMatch(of: /X-[A-Za-z0-9-]{1,60}/) != nil
            guard isOwn || known.contains(where: { $0.utf8.elementsEqual(text.utf8) }) else {
                let hint = context.hint(text, among: known)
                context.error(
                    "\(quoted(text)) is not a category of freedesktop.org's menus: a name of your own begins with X-\(hint)",
                    at: node.position
                )
                return nil
            }
            return text
        }
        guard let names else { return nil }
        guard names.count <= most else {
            context.error("has \(names.count) entries: at most \(most) are allowed", at: node.position)
            return nil
        }
        var seen: Set<String> = []
        return names.filter { seen.insert($0).inserted }
    }
}

/// Reads `language`.
enum LanguageReader {
    @Sendable static func language(_ context: Context, _ node: Node) -> String? {
        guard let text = Read.text(context, node) else { return nil }
        // If the text contains a setting or the name of a scene, the language can only be checked at the launch.
        if !SettingTemplate.names(in: text).isEmpty || Placeholder.isForScene(text) { return text }
        guard AppPresentation.isLocale(text) else {
            context.error(
                "\(quoted(text)) is not a locale as ‘locale -a’ lists them: write, for example, \"de_DE.UTF-8\"",
                at: node.position
            )
            return nil
        }
        return text
    }
}

extension AppPresentation {
    /// Whether a text has the form of a locale name (locale(7)), such as `de_DE.UTF-8@euro` or `C.UTF-8`.
    static func isLocale(_ text: String) -> Bool {
        text.wholeMatch(of: /([a-z]{2,3}(_[A-Z]{2})?|C|POSIX)(\.[A-Za-z0-9-]{1,20})?(@[a-z]{1,20})?/) != nil
    }

    /// The variables LANG and LANGUAGE for a locale; `nil` if the text is not a locale. LANGUAGE is a list of languages
    /// that gettext reads.
    public static func variables(ofLanguage locale: String) -> [String: String]? {
        guard isLocale(locale) else { return nil }
        let code = String(locale.prefix { $0 != "." && $0 != "@" })
        guard code != "C", code != "POSIX" else { return ["LANG": locale, "LANGUAGE": ""] }
        let modifier = locale.firstIndex(of: "@").map { String(locale[$0...]) } ?? ""
        let language = String(code.prefix { $0 != "_" })
        var list: [String] = []
        for name in [code + modifier, code, language + modifier, language] where !list.contains(name) {
            list.append(name)
        }
        return ["LANG": locale, "LANGUAGE": list.joined(separator: ":")]
    }
}
