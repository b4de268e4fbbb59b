import Foundation

/// The drawing.
enum Chart {
    static func svg(_ results: Results) -> String { "" }
}
