// SPDX-License-Identifier: Apache-2.0

import CNCurses
import TopView

/// The colours of text. With 256 colours, they are close to the palette of Okabe and Ito, which colour-blind people can
/// tell apart. Colour is never the only sign of a meaning: a symbol or a word says the same.
struct TopPalette {
    /// For each colour on each background, the ncurses colour pair and the style.
    private var pairs: [Int16]
    private let colours: Int32
    private let hasColour: Bool

    private static let grounds = Style.Background.allCases.count

    /// Creates the palette. The screen must be initialised first.
    init(hasColour wanted: Bool) {
        hasColour = wanted && has_colors() && start_color() == OK && torpor_nc_colours() >= 8
        colours = hasColour ? torpor_nc_colours() : 0
        pairs = Array(repeating: 0, count: Color.allCases.count * Self.grounds)
        guard hasColour else { return }
        use_default_colors()
        let most = torpor_nc_pairs()
        var next: Int16 = 1
        for ink in Color.allCases {
            for ground in Style.Background.allCases where Int32(next) < most {
                let front = foreground(ink, ground)
                let back = background(ground)
                guard front >= 0 || back >= 0 else { continue }
                init_pair(next, front, back)
                pairs[Self.index(ink, ground)] = next
                next += 1
            }
        }
    }

    private static func index(_ ink: Color, _ ground: Style.Background) -> Int {
        Int(ink.rawValue) * grounds + Int(ground.rawValue)
    }

    /// The colour pair of a style, and its attributes for the shim CNCurses.
    func look(_ style: Style) -> (pair: Int16, attributes: Int32) {
        let pair = pairs[Self.index(style.ink, style.ground)]
        var attributes: Int32 = 0
        if style.isBold { attributes |= Int32(TORPOR_NC_BOLD) }
        if style.ground != .plain, colours < 256 { attributes |= Int32(TORPOR_NC_REVERSE) }
        // Terminals with fewer than 256 colours have no grey: show dim text instead.
        if style.ground == .plain, colours < 256, style.ink == .dim || style.ink == .gone {
            attributes |= Int32(TORPOR_NC_DIM)
        }
        if colours == 0, style.ink == .failed { attributes |= Int32(TORPOR_NC_BOLD) }
        return (colours < 256 && style.ground != .plain ? 0 : pair, attributes)
    }

    private func background(_ ground: Style.Background) -> Int16 {
        guard colours >= 256 else { return -1 }
        return switch ground {
        case .plain: -1
        case .bar: 236
        case .selected: 24
        }
    }

    private func foreground(_ ink: Color, _ ground: Style.Background) -> Int16 {
        if colours >= 256 { return ground == .plain ? rich(ink) : ground == .bar ? bar(ink) : onSelection(ink) }
        return colours >= 16 ? bright(ink) : basic(ink)
    }

    /// Colours that are readable on black and on white.
    private func rich(_ ink: Color) -> Int16 {
        switch ink {
        case .plain: -1
        case .dim: 244
        case .active, .good: 36
        case .inactive, .warning: 178
        case .background: 74
        case .suspended: 175
        case .gone: 242
        case .failed: 202
        case .accent: 80
        }
    }

    private func bar(_ ink: Color) -> Int16 {
        switch ink {
        case .failed: 209
        case .warning: 221
        case .dim: 250
        default: 255
        }
    }

    /// Lighter colours, which are readable on the blue of the selection.
    private func onSelection(_ ink: Color) -> Int16 {
        switch ink {
        case .plain, .accent: 255
        case .dim, .gone: 251
        case .active, .good: 121
        case .inactive, .warning: 227
        case .background: 159
        case .suspended: 225
        case .failed: 216
        }
    }

    private func bright(_ ink: Color) -> Int16 {
        switch ink {
        case .plain: -1
        case .dim, .gone: 8
        case .active, .good: 10
        case .inactive, .warning: 11
        case .background, .accent: 14
        case .suspended: 13
        case .failed: 9
        }
    }

    private func basic(_ ink: Color) -> Int16 {
        switch ink {
        case .plain, .dim, .gone: -1
        case .active, .good: 2
        case .inactive, .warning: 3
        case .background, .accent: 6
        case .suspended: 5
        case .failed: 1
        }
    }
}
