// SPDX-License-Identifier: Apache-2.0

/// The glyphs of `torpor top`.
public struct Glyphs: Hashable, Sendable {
    let active: String
    let inactive: String
    let background: String
    let suspended: String
    let gone: String
    let failed: String
    /// Steps of a sparkline, from zero to the maximum.
    let levels: [String]
    /// How the timeline shows an app that is active. The following glyphs are for the other states.
    let laneActive: String
    let laneInactive: String
    let laneBackground: String
    let laneSuspended: String
    let laneGone: String
    let laneUnknown: String
    let gaugeFull: String
    let gaugeEmpty: String
    let line: String
    let tick: String
    let marked: String
    let separator: String
    let moving: String
    let down: String

    /// The characters for terminals with Unicode.
    public static let unicode = Glyphs(
        active: "●",
        inactive: "◐",
        background: "○",
        suspended: "☾",
        gone: "·",
        failed: "✖",
        levels: ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
        laneActive: "█",
        laneInactive: "▓",
        laneBackground: "▒",
        laneSuspended: "░",
        laneGone: "·",
        laneUnknown: " ",
        gaugeFull: "█",
        gaugeEmpty: "░",
        line: "─",
        tick: "┬",
        marked: "▸",
        separator: "·",
        moving: "→",
        down: "▼"
    )

    /// The characters for all other terminals.
    public static let ascii = Glyphs(
        active: "A",
        inactive: "I",
        background: "B",
        suspended: "z",
        gone: ".",
        failed: "X",
        levels: [".", ":", "-", "=", "+", "*", "%", "#"],
        laneActive: "#",
        laneInactive: "+",
        laneBackground: "=",
        laneSuspended: "-",
        laneGone: ".",
        laneUnknown: " ",
        gaugeFull: "#",
        gaugeEmpty: ".",
        line: "-",
        tick: "+",
        marked: ">",
        separator: "|",
        moving: ">",
        down: "v"
    )

    /// The glyph of a state.
    public func sign(_ state: ShownState) -> String {
        switch state {
        case .active: active
        case .inactive: inactive
        case .background: background
        case .suspended: suspended
        case .notRunning: gone
        case .failed: failed
        }
    }

    /// The glyph of a state in a lane of the timeline; nil: unknown.
    func lane(_ state: ShownState?) -> String {
        switch state {
        case .active: laneActive
        case .inactive: laneInactive
        case .background: laneBackground
        case .suspended: laneSuspended
        case .notRunning: laneGone
        case .failed: failed
        case nil: laneUnknown
        }
    }

    /// A sparkline of `columns` columns, the newest at the right. Each column shows the maximum of its values;
    /// unknown values are spaces.
    func sparkline(_ values: [Double?], columns: Int, top: Double) -> String {
        guard columns > 0 else { return "" }
        var text = ""
        for column in 0..<columns {
            let low = column * values.count / columns
            let high = max(low + 1, (column + 1) * values.count / columns)
            let part = low < values.count ? values[low..<min(high, values.count)].compactMap { $0 } : []
            guard let most = part.max() else {
                text += " "
                continue
            }
            let share = top > 0 ? min(1, max(0, most / top)) : 0
            text += levels[Int((share * Double(levels.count - 1)).rounded())]
        }
        return text
    }
}
