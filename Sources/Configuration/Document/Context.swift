// SPDX-License-Identifier: Apache-2.0

import WireText

/// Collects the errors and warnings about a configuration.
package final class DiagnosticSink {
    private(set) var diagnostics: Set<Diagnostic> = []
    private let outer: DiagnosticSink?
    /// Whether some files of the configuration could not be read, because only the supervisor may read them.
    var isPartial = false

    /// - Parameter outer: another sink that also gets each diagnostic, always as a warning.
    package init(warning outer: DiagnosticSink? = nil) { self.outer = outer }

    /// The maximum number of diagnostics that are collected. More would not help the user, and a search for the nearest
    /// name (``Nearest``) for each of them would take long.
    static let limit = 1_000

    var isFull: Bool { diagnostics.count >= Self.limit }
    package var hasErrors: Bool { diagnostics.contains { $0.severity == .error } }

    /// All diagnostics, sorted by file, line and column.
    package var sorted: [Diagnostic] { diagnostics.sorted { $0.order < $1.order } }

    func add(_ diagnostic: Diagnostic) {
        if !isFull { diagnostics.insert(diagnostic) }
        guard let outer else { return }
        var warning = diagnostic
        warning.severity = .warning
        outer.add(warning)
    }
}

/// A place in a configuration: the file and the key that are being read.
package struct Context {
    package let sink: DiagnosticSink
    /// The file's path, as diagnostics write it.
    let file: String
    /// The absolute path of the folder against which relative paths in the file are resolved.
    package let folder: String
    /// The key with the tables that contain it, such as `apps.web.restart`.
    package private(set) var path: String

    package init(sink: DiagnosticSink, file: String, folder: String) {
        self.sink = sink
        self.file = file
        self.folder = folder
        self.path = ""
    }

    /// The same place, but with another sink for diagnostics.
    func telling(_ sink: DiagnosticSink) -> Context {
        var other = Context(sink: sink, file: file, folder: folder)
        other.path = path
        return other
    }

    /// The place of the key `key`, in the table at the current place.
    package func at(_ key: String) -> Context {
        var inner = self
        let isBare = !key.isEmpty && key.utf8.allSatisfy { $0.isNameByte }
        let part = isBare ? key : quoted(key)
        inner.path = path.isEmpty ? part : path + "." + part
        return inner
    }

    /// The place of the element `index` (from 0) in the array at the current place.
    package func at(_ index: Int) -> Context {
        var inner = self
        inner.path = path + "[\(index)]"
        return inner
    }

    package func error(_ message: String, at position: SourcePosition) {
        add(message, at: position, .error)
    }

    func warning(_ message: String, at position: SourcePosition) {
        add(message, at: position, .warning)
    }

    /// Reports the error `expected …, found …`. Always returns nil, so that a reader can return the result.
    package func expected<T>(_ what: String, _ node: Node) -> T? {
        error("expected \(what), found \(node.kind)", at: node.position)
        return nil
    }

    private func add(_ message: String, at position: SourcePosition, _ severity: Diagnostic.Severity) {
        sink.add(
            Diagnostic(
                file: file,
                line: position.line,
                column: position.column,
                path: path,
                message: message,
                severity: severity
            )
        )
    }
}

/// The place where a key was written, for later errors and warnings.
package struct Origin {
    var context: Context
    package var position: SourcePosition

    package func error(_ message: String) {
        context.error(message, at: position)
    }

    func warning(_ message: String) {
        context.warning(message, at: position)
    }

    /// Reports that something is missing: an error, unless it may be in a file that could not be read.
    func missing(_ message: String) {
        guard context.sink.isPartial else { return error(message) }
        warning("\(message); it may be in a file that you may not read")
    }

    /// The place as `file:line`, for a message that mentions it.
    var place: String { "\(context.file):\(position.line)" }
}

extension UInt8 {
    /// Whether the byte is a letter, digit, `-` or `_`.
    var isNameByte: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

/// The text in quotes, for a message.
package func quoted(_ text: String) -> String { text.inQuotes }

/// Finds the existing name that is most similar to a mistyped name, for a hint to the user.
public enum Nearest {
    /// The most similar of the names; nil if none is similar enough.
    ///
    /// - Parameter most: the largest number of edits. By default, one edit is allowed for every three bytes of the
    ///   text.
    public static func name(to text: String, among names: some Sequence<String>, within most: Int = .max) -> String? {
        let wanted = Array(text.lowercased().utf8)
        guard !wanted.isEmpty, wanted.count <= 64 else { return nil }
        let bound = min(most, wanted.count < 2 ? 0 : max(1, wanted.count / 3))
        var best: (name: String, distance: Int)?
        for name in names {
            let candidate = Array(name.lowercased().utf8)
            guard abs(candidate.count - wanted.count) <= bound else { continue }
            let distance = distance(wanted, candidate)
            guard distance <= bound else { continue }
            if let found = best, (found.distance, found.name) <= (distance, name) { continue }
            best = (name, distance)
        }
        return best?.name
    }

    /// `; did you mean "…"?`, or an empty string if no name is similar enough.
    package static func hint(_ text: String, among names: some Sequence<String>, within most: Int = .max) -> String {
        name(to: text, among: names, within: most).map { "; did you mean \(quoted($0))?" } ?? ""
    }

    /// The edit distance of two names: the number of insertions, deletions, replacements and swaps of neighbouring
    /// bytes.
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var beforeLast = [Int](repeating: 0, count: right.count + 1)
        var last = Array(0...right.count)
        for i in 1...max(1, left.count) where i <= left.count {
            var current = [Int](repeating: i, count: right.count + 1)
            for j in 1...max(1, right.count) where j <= right.count {
                let replaced = last[j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1)
                var best = min(replaced, last[j] + 1, current[j - 1] + 1)
                if i > 1, j > 1, left[i - 1] == right[j - 2], left[i - 2] == right[j - 1] {
                    best = min(best, beforeLast[j - 2] + 1)
                }
                current[j] = best
            }
            (beforeLast, last) = (last, current)
        }
        return last[right.count]
    }
}
