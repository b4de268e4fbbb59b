// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
import WireText

/// What an app showed when it was in the background last, beside what is known of it.
public struct TopSnapshot: Hashable, Sendable {
    /// What a terminal can be given.
    public enum Content: Hashable, Sendable {
        /// The first lines of a text.
        case text([String])
        /// A PNG, and its size in pixels.
        case picture([UInt8], width: Int, height: Int)
        /// What no terminal shows, or too much.
        case other
    }

    /// The app's name.
    public var app: String
    /// What it is.
    public var info: SnapshotInfo
    /// What there is to show.
    public var content: Content

    /// The most bytes of a picture that a terminal is given.
    public static let mostBytes = 1 << 20

    /// Makes one from a snapshot and its bytes.
    public init(app: String, _ info: SnapshotInfo, _ data: [UInt8]) {
        (self.app, self.info) = (app, info)
        switch info.kind {
        case .text:
            let lines = String(wire: data).split(separator: "\n", omittingEmptySubsequences: false)
            content = .text(lines.prefix(100).map(String.init))
        case .png:
            if let (width, height) = Self.size(ofPNG: data), data.count <= Self.mostBytes {
                content = .picture(data, width: width, height: height)
            } else {
                content = .other
            }
        case .jpeg, .gif, .webp, nil: content = .other
        }
    }

    /// The size that a PNG says it has (its first chunk, IHDR).
    private static func size(ofPNG data: [UInt8]) -> (width: Int, height: Int)? {
        guard data.count >= 24, data.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) else { return nil }
        func number(_ at: Int) -> Int { data[at..<at + 4].reduce(0) { $0 << 8 | Int($1) } }
        let (width, height) = (number(16), number(20))
        return (1...16_384).contains(width) && (1...16_384).contains(height) ? (width, height) : nil
    }
}

/// Cells of the screen that a picture fills.
public struct PicturePlace: Hashable, Sendable {
    /// Its first row and column, from 0.
    public var row: Int
    /// Its first column.
    public var column: Int
    /// How many rows it has.
    public var rows: Int
    /// How many columns it has.
    public var columns: Int
}

extension TopModel {
    /// Where its page has the picture, in a terminal that shows some; nil where there is none, or no room.
    public var picturePlace: PicturePlace? {
        guard drawsPictures, mode == .details, let snapshot, snapshot.app == subject,
            case .picture(_, let width, let height) = snapshot.content, let box = TopLayout.snapshotBox(self)
        else { return nil }
        // A cell is about twice as high as it is wide.
        let rows = min(box.rows, max(1, box.columns * height / (2 * width)))
        let columns = min(box.columns, max(1, 2 * rows * width / height))
        return PicturePlace(row: box.row, column: box.column, rows: rows, columns: columns)
    }
}

extension TopLayout {
    /// Where a page has room for what the app showed, below its title.
    static func snapshotBox(_ model: TopModel) -> PicturePlace? {
        let body = Regions(model.size, .details).body
        guard model.size.columns >= 110, body.count >= 6 else { return nil }
        return PicturePlace(
            row: body.lowerBound + 1,
            column: model.size.columns - 42,
            rows: min(body.count - 1, 14),
            columns: 40
        )
    }

    /// At the right of the page what the app showed last.
    mutating func snapshot() {
        guard let snapshot = model.snapshot, snapshot.app == model.subject, let box = Self.snapshotBox(model) else {
            return
        }
        let blank = String(repeating: " ", count: box.columns + 2)
        for row in box.row - 1..<box.row + box.rows { grid.put(blank, row: row, column: box.column - 2) }
        let age = Amounts.age(seconds: Double(model.now - snapshot.info.at) / 1e6)
        let kind = snapshot.info.kind?.rawValue ?? "unknown"
        let title = "showed \(age == "now" ? age : age + " ago") (\(kind), \(Amounts.memory(snapshot.info.bytes)))"
        grid.put(title, row: box.row - 1, column: box.column, width: box.columns, Style(.dim))
        func put(_ lines: [String], _ style: Style) {
            for (index, line) in lines.prefix(box.rows).enumerated() {
                grid.put(line, row: box.row + index, column: box.column, width: box.columns, style)
            }
        }
        switch snapshot.content {
        case .text(let lines): put(lines, Style())
        case .picture where model.drawsPictures: break
        case .picture, .other:
            put(["a picture: torpor snapshot \(snapshot.app)", "  -o FILE, or the dashboard"], Style(.dim))
        }
    }
}
