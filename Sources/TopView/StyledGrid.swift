// SPDX-License-Identifier: Apache-2.0

/// The meaning of a piece of text; the screen chooses the colour for it.
public enum Color: UInt8, CaseIterable, Hashable, Sendable {
    case plain
    /// Text that is less important.
    case dim
    case active
    case inactive
    case background
    case suspended
    /// The state not-running.
    case gone
    /// For a failed app, an exit that was not requested, or an error.
    case failed
    /// For a warning, or something that is in progress.
    case warning
    /// A state in which all is well.
    case good
    /// Keys and titles.
    case accent
}

/// The look of a cell.
public struct Style: Hashable, Sendable {
    /// Where a cell is, which determines its background.
    public enum Background: UInt8, CaseIterable, Hashable, Sendable {
        case plain
        /// The title bar.
        case bar
        /// The selected row.
        case selected
    }

    /// The foreground colour.
    public var ink: Color
    /// The background.
    public var ground: Background
    /// Whether the text is bold.
    public var isBold: Bool

    /// Creates a style.
    public init(_ ink: Color = .plain, bold: Bool = false, on ground: Background = .plain) {
        self.ink = ink
        self.ground = ground
        isBold = bold
    }
}

/// One cell of the screen.
public struct Cell: Hashable, Sendable {
    /// A character with its combining characters; empty in the second column of a wide one.
    public var text: String = " "
    /// The cell's look.
    public var style = Style()
    /// Whether this cell and the next one show one wide character.
    public var isWide = false
}

/// The screen's content as rows of cells, so that tests can inspect it without a terminal.
public struct StyledGrid: Hashable, Sendable {
    /// The width in columns.
    public let columns: Int
    /// The height in rows.
    public let rows: Int
    /// The characters that text may contain.
    public let characters: DisplayText.Characters
    /// All cells, row by row.
    public private(set) var cells: [Cell]

    /// Creates an empty grid.
    public init(columns: Int, rows: Int, characters: DisplayText.Characters = .unicode) {
        self.columns = max(1, columns)
        self.rows = max(1, rows)
        self.characters = characters
        cells = Array(repeating: Cell(), count: self.columns * self.rows)
    }

    /// The cells of a row.
    public func row(_ index: Int) -> ArraySlice<Cell> { cells[index * columns..<(index + 1) * columns] }

    /// Writes text from a position on, clipped to the grid.
    ///
    /// - Parameter width: longer text is cut to this many columns and ends with an ellipsis.
    /// - Returns: the columns used.
    @discardableResult
    public mutating func put(
        _ text: String,
        row: Int,
        column: Int,
        width: Int? = nil,
        _ style: Style = Style()
    ) -> Int {
        guard (0..<rows).contains(row), (0..<columns).contains(column) else { return 0 }
        let room = min(width ?? .max, columns - column)
        guard room > 0 else { return 0 }
        var place = column
        for piece in DisplayText.fitted(DisplayText.pieces(text, characters), to: room, characters) {
            set(piece, at: row * columns + place, style)
            place += piece.width
        }
        return place - column
    }

    /// Writes text so that it ends before column `end`.
    public mutating func put(_ text: String, row: Int, endingAt end: Int, width: Int, _ style: Style = Style()) {
        let pieces = DisplayText.fitted(DisplayText.pieces(text, characters), to: width, characters)
        let taken = pieces.reduce(0) { $0 + $1.width }
        put(text, row: row, column: max(0, end - taken), width: width, style)
    }

    /// Sets the background of cells in a row, and leaves their text as it is.
    public mutating func ground(_ ground: Style.Background, row: Int, _ range: Range<Int>? = nil) {
        guard (0..<rows).contains(row) else { return }
        for column in (range ?? 0..<columns).clamped(to: 0..<columns) {
            cells[row * columns + column].style.ground = ground
        }
    }

    private mutating func set(_ piece: DisplayText.Piece, at index: Int, _ style: Style) {
        // Blank the other half of a wide character that is overwritten in part.
        if cells[index].text.isEmpty, index % columns > 0 { cells[index - 1] = Cell() }
        let last = index + piece.width - 1
        if cells[last].isWide, (last + 1) % columns > 0 { cells[last + 1] = Cell() }
        cells[index] = Cell(text: piece.text, style: style, isWide: piece.width == 2)
        if piece.width == 2 { cells[last] = Cell(text: "", style: style) }
    }

    /// A row as plain text, without trailing spaces.
    public func text(ofRow index: Int) -> String {
        var text = row(index).map(\.text).joined()
        while text.hasSuffix(" ") { text.removeLast() }
        return text
    }

    /// The whole grid as plain text.
    public var text: String { (0..<rows).map { text(ofRow: $0) }.joined(separator: "\n") + "\n" }
}
