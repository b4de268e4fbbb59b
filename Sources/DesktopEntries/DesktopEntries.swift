// SPDX-License-Identifier: Apache-2.0

package import TorporAPI

/// The desktop entries that the apps of a supervisor should have.
package struct DesktopEntries {
    /// One desktop entry.
    package struct Entry: Hashable, Sendable {
        /// The app's name.
        package var app: String
        /// The file's name.
        package var file: String
        /// The file's content.
        package var text: String
    }

    /// The entries, by the app's name.
    package private(set) var entries: [Entry] = []
    /// Remarks for users, such as a file type that this machine does not know, as sentences.
    package private(set) var remarks: [String] = []
    /// The control socket of the supervisor.
    package let socket: String

    /// - Parameters:
    ///   - apps: the apps that get entries.
    ///   - command: how entries call `torpor`.
    ///   - socket: the control socket of the supervisor that has the apps.
    ///   - media: the media types that this machine knows.
    package init(
        of apps: [DesktopApp],
        _ command: DesktopEntry.Command,
        socket: String,
        media: MediaTypes = MediaTypes()
    ) {
        self.socket = socket
        var known: [String: [String]] = [:]
        for app in apps.sorted(by: { $0.name < $1.name }) {
            let name = DesktopEntryName.name(of: app.name)
            let types = Self.types(of: app, &known, media, &remarks)
            let text = DesktopEntry(app, command, socket: socket, types: types).text
            entries.append(Entry(app: app.name, file: name + DesktopEntryName.suffix, text: text))
        }
    }

    /// The media types for `opens`, each once. A desktop entry lists media types only, so this function replaces
    /// patterns by the media types that they match.
    ///
    /// - Parameter known: caches the results, since apps share patterns and the machine's databases are large.
    private static func types(
        of app: DesktopApp,
        _ known: inout [String: [String]],
        _ media: MediaTypes,
        _ remarks: inout [String]
    ) -> [String] {
        var types: [String] = []
        for entry in app.files {
            let found = known[entry] ?? Self.types(for: entry, media)
            known[entry] = found
            if found.isEmpty {
                remarks.append(
                    "\(app.name) opens \(entry), for which this machine knows no media type: desktops do not offer it"
                )
            }
            for type in found where !types.contains(type) { types.append(type) }
        }
        return types
    }

    private static func types(for entry: String, _ media: MediaTypes) -> [String] {
        let parts = entry.split(separator: "/", omittingEmptySubsequences: false)
        if parts.count != 2 {
            // Only a pattern like `*.md` names a single media type; other patterns cannot be listed.
            let hasOne = entry.utf8.starts(with: "*.".utf8) && !entry.dropFirst(2).contains { "*?[".contains($0) }
            return hasOne ? [media.type(of: "file" + entry.dropFirst())].compactMap(\.self) : []
        }
        if parts[1] == "*", isPlain(parts[0]) { return media.types(ofKind: String(parts[0])) }
        return parts.allSatisfy(isPlain) ? [entry] : []
    }

    /// Whether a part of a media type has only characters that RFC 6838 allows.
    private static func isPlain(_ part: Substring) -> Bool {
        part.wholeMatch(of: /[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/) != nil
    }
}
