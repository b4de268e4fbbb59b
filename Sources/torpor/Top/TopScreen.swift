// SPDX-License-Identifier: Apache-2.0

import CNCurses
import CommandLinePages
import Linux
import TopView

/// The terminal, by ncurses: shows a picture, gives keys, and is as it was before when it is left. Only for the thread
/// that made it.
final class TopScreen {
    private let palette: TopPalette
    private var shown: StyledGrid?
    private var pictures = TerminalPictures()
    private var isOpen = true

    /// Terminals for those that are not known here, by how their names begin: over ssh from a newer machine, mostly.
    private static let standIns = [
        ("tmux", "screen"), ("screen", "screen"), ("xterm", "xterm-256color"), ("alacritty", "xterm-256color"),
        ("foot", "xterm-256color"), ("wezterm", "xterm-256color"), ("rxvt", "xterm"),
    ]

    /// Takes the terminal. `hasColour`: as far as the terminal has.
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

    /// Whether the terminal is this process's now. In the background it is the shell's, which has set it as it wants it;
    /// whoever touches it there is stopped, deaf to SIGTERM too.
    var isForeground: Bool { TerminalDevice.isForeground(0) }

    /// Gives the terminal back; once is enough.
    func close() {
        guard isOpen else { return }
        isOpen = false
        guard isForeground else { return }
        pictures.show(nil)
        curs_set(1)
        endwin()
    }

    /// Gives the terminal back for a while; the next picture takes it again.
    func leave() {
        shown = nil
        guard isForeground else { return }
        pictures.show(nil)
        curs_set(1)
        endwin()
    }

    /// Has the next picture be written as a whole: others may have written to the terminal, or changed it.
    func redraw() {
        reset_prog_mode()
        // Otherwise it would be on with the first key that is read, and that one not known.
        keypad(torpor_nc_screen(), true)
        shown = nil
    }

    /// The size, as the terminal tells.
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

    /// Shows a picture: only what is another than before is written. On top of it what an app showed, where it has a place.
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

    /// The next key that was pressed; nil when there is none.
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
        // Ctrl-L draws all anew: the window's own size does.
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
