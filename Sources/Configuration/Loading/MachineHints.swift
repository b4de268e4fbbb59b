// SPDX-License-Identifier: Apache-2.0

/// Warnings about files that are probably at another path on this machine. They are never errors, because the file may
/// be created later, or the configuration may be for another machine.
enum MachineHints {
    /// The policies that are part of Torpor. For each, its usual name and the file of its library.
    static let shippedPolicies: KeyValuePairs = [
        "jetsam": "libJetsamPolicy.so", "mobile": "libMobilePolicy.so", "schedule": "libSchedulePolicy.so",
        "server": "libServerPolicy.so",
    ]

    /// The line to add to the configuration of a policy without `path`.
    static func library(of policy: String) -> String {
        let name = policy.lowercased()
        if let own = shippedPolicies.first(where: { $0.key == name }) { return "path = \"\(own.value)\"" }
        let all = shippedPolicies.map(\.value).joined(separator: ", ")
        return "path = \"libNAME.so\" (Torpor comes with \(all))"
    }

    /// Warns if the file of a policy's library does not exist but the folder of the file does. Returns false in that
    /// case.
    static func checkLibrary(
        _ policy: PolicySpecification,
        _ origin: Origin,
        in folder: String,
        _ system: ConfigurationSystem
    ) -> Bool {
        let path = Path.join(folder, policy.path)
        let name = path.split(separator: "/").last.map(String.init) ?? path
        guard !policy.path.isEmpty, let names = system.names(Path.folder(path)), !names.contains(name) else {
            return true
        }
        let hint = origin.hint(name, among: names.filter { $0.hasSuffix(".so") })
        origin.warning("there is no \(quoted(name)) in \(Path.folder(path)) now\(hint)")
        return false
    }

    /// Warns if the file of a picture does not exist but the folder of the file does.
    ///
    /// - Parameter folders: a cache of the names in folders.
    static func checkIcon(
        _ app: AppSpecification,
        _ draft: AppDraft,
        _ system: ConfigurationSystem,
        _ folders: inout [String: [String]?]
    ) {
        let presentation = app.presentation
        if presentation.icon == nil, presentation.icons.isEmpty, presentation.launchImage == nil { return }
        let icons = [presentation.icon].compactMap(\.self) + presentation.icons.values.sorted()
        let launchImages = [presentation.launchImage].compactMap(\.self)
        for (key, picture) in icons.map({ ("icon", $0) }) + launchImages.map({ ("launch_image", $0) }) {
            // The path contains a placeholder for a scene, so it is unknown until the scene exists.
            guard app.scenes == nil || !Placeholder.isForScene(picture) else { continue }
            let name = picture.split(separator: "/").last.map(String.init) ?? picture
            let folder = Path.folder(picture)
            let names = folders[folder] ?? system.names(folder)
            folders[folder] = .some(names)
            guard let names, !names.contains(name) else { continue }
            draft.warning(key, "there is no \(quoted(name)) in \(folder) now\(draft.hint(name, among: names))")
        }
    }

    /// Warns if an argument is the name of a file beside the configuration file, but the app's working directory is
    /// `/`. Returns the argument.
    static func checkDirectory(_ draft: AppDraft, _ system: ConfigurationSystem) -> String? {
        guard draft.specification.directory == nil, draft.specification.container == nil else { return nil }
        let words = draft.specification.exec.filter { word in
            word.utf8.contains(UInt8(ascii: ".")) && !word.hasPrefix("/") && !word.hasPrefix("-")
        }
        // Few apps have such an argument, and a path is slow to make.
        guard !words.isEmpty else { return nil }
        let folder = Path.folder(Path.join(system.workingDirectory, draft.origin.context.file))
        guard folder != "/" else { return nil }
        for word in words {
            let path = Path.join(folder, word)
            let name = path.split(separator: "/").last.map(String.init) ?? path
            guard system.names(Path.folder(path))?.contains(name) == true else { continue }
            draft.warning(
                "exec",
                "\(quoted(word)) is looked up in /, the app's working directory: write directory = \(quoted(folder))"
            )
            return word
        }
        return nil
    }
}
