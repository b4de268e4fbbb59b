import Foundation

/// The same tables for a page of the documentation.
enum Markdown {
    static func text(_ results: Results) -> String { "" }
}
