// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The few SVG elements that the drawing needs. Colours are of medium brightness, readable on light and dark pages;
/// there is no background.
enum SVG {
    static let text = "#7f868e"
    static let line = "#7f868e55"

    /// Torpor in a strong colour, floor and the peers in pale ones.
    static func colour(_ peer: String) -> String {
        switch peer {
        case "torpor": "#e0701a"
        case "torpor-nocg": "#e8a56c"
        case "torpor-before": "#b98a62"
        case "floor": "#9aa1a9"
        case "systemd": "#4f8fd0"
        case "s6": "#3fa38a"
        case "runit": "#a07ccc"
        case "supervisord": "#c06a86"
        default: "#8a9a5b"
        }
    }

    static func label(
        _ text: String,
        x: Double,
        y: Double,
        size: Double = 11,
        anchor: String = "start",
        colour: String = SVG.text,
        isBold: Bool = false
    ) -> String {
        let weight = isBold ? " font-weight=\"600\"" : ""
        return "<text x=\"\(short(x))\" y=\"\(short(y))\" font-size=\"\(short(size))\" text-anchor=\"\(anchor)\" "
            + "fill=\"\(colour)\"\(weight)>\(escaped(text))</text>\n"
    }

    static func bar(x: Double, y: Double, width: Double, height: Double, colour: String) -> String {
        "<rect x=\"\(short(x))\" y=\"\(short(y))\" width=\"\(short(max(width, 0.5)))\" height=\"\(short(height))\" "
            + "rx=\"1.5\" fill=\"\(colour)\"/>\n"
    }

    static func rule(_ from: (Double, Double), _ to: (Double, Double)) -> String {
        "<path d=\"M\(short(from.0)) \(short(from.1))L\(short(to.0)) \(short(to.1))\" stroke=\"\(line)\"/>\n"
    }

    static func curve(_ points: [(x: Double, y: Double)], colour: String) -> String {
        let path = points.enumerated().map { "\($0 == 0 ? "M" : "L")\(short($1.x)) \(short($1.y))" }.joined()
        let dots = points.map { "<circle cx=\"\(short($0.x))\" cy=\"\(short($0.y))\" r=\"2.5\" fill=\"\(colour)\"/>\n" }
        return "<path d=\"\(path)\" fill=\"none\" stroke=\"\(colour)\" stroke-width=\"1.8\"/>\n" + dots.joined()
    }

    static func document(width: Double, height: Double, _ body: String) -> String {
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(short(width)) \(short(height))\" "
            + "width=\"\(short(width))\" height=\"\(short(height))\" "
            + "font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n\(body)</svg>\n"
    }

    private static func short(_ number: Double) -> String {
        number == number.rounded() ? "\(Int(number))" : String(format: "%.1f", number)
    }

    private static func escaped(_ text: String) -> String {
        text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
    }
}
