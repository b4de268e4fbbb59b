// SPDX-License-Identifier: Apache-2.0

/// What a piece of text means; a screen chooses the colour for it.
public enum Color: UInt8, CaseIterable, Hashable, Sendable {
    case plain
    /// Of less importance.
    case dim
    case active
    case inactive
    case background
    case suspended
    /// Not running.
    case gone
    /// Failed, an ending that nobody asked for, an error.
    case failed
    /// Something to be aware of; under way.
    case warning
    /// All is well.
    case good
    /// Keys, titles.
    case accent
}

/// How a cell looks.
public struct Style: Hashable, Sendable {
    /// Where a cell stands, which gives it its ground.
    public enum Background: UInt8, CaseIterable, Hashable, Sendable {
        case plain
        /// The title.
        case bar
        /// The selected row.
        case selected
    }

    /// Its colour.
    public var ink: Color
    /// Its ground.
    public var ground: Background
    /// Bold.
    public var isBold: Bool

    /// Makes one.
    public init(_ ink: Color = .plain, bold: Bool = false, on ground: Background = .plain) {
        self.ink = ink
        self.ground = ground
        isBold = bold
    }
}

/// One place of the screen.
public struct Cell: Hashable, Sendable {
    /// A character with what combines with it; empty in the second column of a wide one.
    public var text: String = " "
    /// How it looks.
    public var style = Style()
    /// It and the next cell are one wide character.
    public var isWide = false
}

/// A picture of the screen: rows of cells, so that it can be looked at without a terminal.
public struct StyledGrid: Hashable, Sendable {
    /// How wide it is.
    public let columns: Int
    /// How high it is.
    public let rows: Int
    /// What text may have in it.
    public let characters: DisplayText.Characters
    /// All cells, row by row.
    public private(set) var cells: [Cell]

    /// An empty one.
    public init(columns: Int, rows: Int, characters: DisplayText.Characters = .unicode) {
        self.columns = max(1, columns)
        self.rows = max(1, rows)
        self.characters = characters
        cells = Array(repeating: Cell(), count: self.columns * self.rows)
    }

    /// The cells of a row.
    public func row(_ index: Int) -> ArraySlice<Cell> { cells[index * columns..<(index + 1) * columns] }

    /// Writes text from a place on; what is outside of the picture is left out.
    ///
    /// - Parameter width: it is cut to that, with a sign that it was.
    /// - Returns: how many columns it took.
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

    /// Writes text so that it ends before a place.
    public mutating func put(_ text: String, row: Int, endingAt end: Int, width: Int, _ style: Style = Style()) {
        let pieces = DisplayText.fitted(DisplayText.pieces(text, characters), to: width, characters)
        let taken = pieces.reduce(0) { $0 + $1.width }
        put(text, row: row, column: max(0, end - taken), width: width, style)
    }

    /// Gives cells of a row a ground, without changing what is in them.
    public mutating func ground(_ ground: Style.Background, row: Int, _ range: Range<Int>? = nil) {
        guard (0..<rows).contains(row) else { return }
        for column in (range ?? 0..<columns).clamped(to: 0..<columns) {
            cells[row * columns + column].style.ground = ground
        }
    }

    private mutating func set(_ piece: DisplayText.Piece, at index: Int, _ style: Style) {
        // Half a wide character is none.
        if cells[index].text.isEmpty, index % columns > 0 { cells[index - 1] = Cell() }
        let last = index + piece.width - 1
        if cells[last].isWide, (last + 1) % columns > 0 { cells[last + 1] = Cell() }
        cells[index] = Cell(text: piece.text, style: style, isWide: piece.width == 2)
        if piece.width == 2 { cells[last] = Cell(text: "", style: style) }
    }

    /// A row as plain text, without the spaces at its end.
    public func text(ofRow index: Int) -> String {
        var text = row(index).map(\.text).joined()
        while text.hasSuffix(" ") { text.removeLast() }
        return text
    }

    /// All of it as plain text.
    public var text: String { (0..<rows).map { text(ofRow: $0) }.joined(separator: "\n") + "\n" }
}
