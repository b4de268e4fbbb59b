// SPDX-License-Identifier: Apache-2.0

import CNCurses
import CommandLinePages
import Linux
import TopView

/// The terminal, through ncurses: draws grids, reads keys, and restores the terminal at the end. May be used only on
/// the thread that created it.
final class TopScreen {
    private let palette: TopPalette
    private var shown: StyledGrid?
    private var pictures = TerminalPictures()
    private var isOpen = true

    /// Known terminal types to use in place of unknown ones, by the prefix of the unknown type. A type may be unknown
    /// here if the user comes by ssh from a newer machine.
    private static let standIns = [
        ("tmux", "screen"), ("screen", "screen"), ("xterm", "xterm-256color"), ("alacritty", "xterm-256color"),
        ("foot", "xterm-256color"), ("wezterm", "xterm-256color"), ("rxvt", "xterm"),
    ]

    /// Takes control of the terminal. `hasColour`: whether to use colours if the terminal has them.
    init(hasColour: Bool) throws(Failure) {
        let name = ThisProcess.environment("TERM") ?? ""
        guard !name.isEmpty, name != "dumb" else {
            throw Failure(
                status: .usage,
                message:
                    "the terminal cannot place text (TERM is \(name.isEmpty ? "not set" : name)): use ‘torpor list’, "
                    + "or ‘torpor top --once’"
            )
        }
        let others = Self.standIns.filter { name.hasPrefix($0.0) }.map(\.1) + ["vt100"]
        guard ([name] + others).contains(where: { torpor_nc_start($0) == 1 }) else {
            throw Failure(
                status: .usage,
                message:
                    "the terminal type \(Terminal.harmless(name)) is unknown: set TERM to a known one, "
                    + "such as xterm, or use ‘torpor list’"
            )
        }
        torpor_nc_restore_on_failure()
        cbreak()
        noecho()
        nonl()
        set_escdelay(25)
        let screen = torpor_nc_screen()
        keypad(screen, true)
        nodelay(screen, true)
        intrflush(screen, false)
        leaveok(screen, true)
        curs_set(0)
        palette = TopPalette(hasColour: hasColour)
    }

    deinit { close() }

    /// Whether this process is in the terminal's foreground. In the background, a change of the terminal's modes stops
    /// this process (SIGTTOU), and a stopped process does not even end at SIGTERM.
    var isForeground: Bool { TerminalDevice.isForeground(0) }

    /// Restores the terminal. Further calls have no effect.
    func close() {
        guard isOpen else { return }
        isOpen = false
        guard isForeground else { return }
        pictures.show(nil)
        curs_set(1)
        endwin()
    }

    /// Restores the terminal until the next `show`, which takes control again.
    func leave() {
        shown = nil
        guard isForeground else { return }
        pictures.show(nil)
        curs_set(1)
        endwin()
    }

    /// Makes the next `show` draw everything, because other programs may have written to the terminal or changed its
    /// modes.
    func redraw() {
        reset_prog_mode()
        // Enable the keypad now. Otherwise ncurses enables it only at the next read, and misreads the key pressed then.
        keypad(torpor_nc_screen(), true)
        shown = nil
    }

    /// The terminal's size as the kernel reports it.
    func size() -> TopModel.Size {
        if let size = TerminalDevice.size(1) {
            let (rows, columns) = (min(size.rows, 1000), min(size.columns, 2000))
            if getmaxy(torpor_nc_screen()) != rows || getmaxx(torpor_nc_screen()) != columns {
                resizeterm(Int32(rows), Int32(columns))
                shown = nil
            }
        }
        return TopModel.Size(columns: Int(getmaxx(torpor_nc_screen())), rows: Int(getmaxy(torpor_nc_screen())))
    }

    /// Draws only cells that have changed. If the grid has a place for it, an app's snapshot is shown on top.
    func show(_ grid: StyledGrid, _ snapshot: (place: PicturePlace, snapshot: TopSnapshot)? = nil) {
        if shown == nil {
            pictures.forget()
            erase()
            clearok(torpor_nc_screen(), true)
            curs_set(0)
        }
        for row in 0..<grid.rows {
            if let shown, shown.columns == grid.columns, row < shown.rows, shown.row(row).elementsEqual(grid.row(row)) {
                continue
            }
            for (column, cell) in grid.row(row).enumerated() where !cell.text.isEmpty {
                let look = palette.look(cell.style)
                let scalars = cell.text.unicodeScalars.map(\.value)
                torpor_nc_put(Int32(row), Int32(column), scalars, Int32(scalars.count), look.attributes, look.pair)
            }
        }
        refresh()
        shown = grid
        pictures.show(snapshot)
    }

    /// The next pressed key; nil if there is none.
    func key() -> TopKey? {
        while true {
            var code: UInt32 = 0
            let kind = torpor_nc_key(&code)
            if kind == ERR { return nil }
            if let key = kind == OK ? Self.character(code) : Self.special(Int32(bitPattern: code)) { return key }
        }
    }

    private static func character(_ code: UInt32) -> TopKey? {
        switch code {
        case 10, 13: .enter
        case 27: .escape
        case 8, 127: .backspace
        // Other control characters are ignored.
        default:
            Unicode.Scalar(code).flatMap {
                code >= 0x20 && !(0x7f...0x9f).contains(code) ? .character(Character($0)) : nil
            }
        }
    }

    private static func special(_ code: Int32) -> TopKey? {
        switch code {
        case KEY_UP: .up
        case KEY_DOWN: .down
        case KEY_LEFT: .left
        case KEY_RIGHT: .right
        case KEY_PPAGE: .pageUp
        case KEY_NPAGE: .pageDown
        case KEY_HOME, KEY_FIND: .home
        case KEY_END, KEY_SELECT: .end
        case KEY_ENTER: .enter
        case KEY_BACKSPACE: .backspace
        default: nil
        }
    }
}
