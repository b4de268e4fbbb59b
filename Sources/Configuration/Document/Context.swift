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

    /// The maximum number of diagnostics that are collected. More would not help the user.
    static let limit = 1_000

    /// How many steps (``Nearest/Result``) searches for similar names may still take. Without a bound, a configuration
    /// whose many names are all unknown would take time with the square of its size.
    private var steps = 8_000_000

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

    /// `; did you mean "…"?` (``Nearest``). An empty string if no name is similar enough, or if the searches of this
    /// configuration have taken long already, or if there are so many diagnostics that no more are collected.
    ///
    /// - Parameter names: evaluated only if there is a search.
    func hint<Names: Sequence<String>>(
        _ text: String,
        among names: () -> Names,
        within most: Int = .max
    ) -> String {
        guard !isFull, steps > 0 else { return "" }
        if let outer { return outer.hint(text, among: names, within: most) }
        let found = Nearest.search(text, among: names(), within: most)
        steps -= found.steps
        return Nearest.hint(found.name)
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

    /// `; did you mean "…"?`, for an error or warning (``DiagnosticSink/hint(_:among:within:)``).
    func hint<Names: Sequence<String>>(
        _ text: String,
        among names: @autoclosure () -> Names,
        within most: Int = .max
    ) -> String {
        sink.hint(text, among: names, within: most)
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

    /// `; did you mean "…"?`, for an error or warning (``DiagnosticSink/hint(_:among:within:)``).
    func hint<Names: Sequence<String>>(
        _ text: String,
        among names: @autoclosure () -> Names,
        within most: Int = .max
    ) -> String {
        context.sink.hint(text, among: names, within: most)
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
