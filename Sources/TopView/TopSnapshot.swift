// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
import WireText

/// The snapshot that an app saved when it last went to the background, shown beside its details.
public struct TopSnapshot: Hashable, Sendable {
    /// The kinds of snapshots, by what a terminal can show.
    public enum Content: Hashable, Sendable {
        /// The first lines of a text.
        case text([String])
        /// A PNG, and its size in pixels.
        case picture([UInt8], width: Int, height: Int)
        /// A snapshot of a kind that terminals cannot show, or one that is too large.
        case other
    }

    /// The app's name.
    public var app: String
    /// The snapshot's description.
    public var info: SnapshotInfo
    /// The displayable content.
    public var content: Content

    /// The largest picture sent to a terminal, in bytes.
    public static let mostBytes = 1 << 20

    /// Decodes a snapshot's bytes.
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

    /// The pixel size in the PNG's header (its first chunk, IHDR).
    private static func size(ofPNG data: [UInt8]) -> (width: Int, height: Int)? {
        guard data.count >= 24, data.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) else { return nil }
        func number(_ at: Int) -> Int { data[at..<at + 4].reduce(0) { $0 << 8 | Int($1) } }
        let (width, height) = (number(16), number(20))
        return (1...16_384).contains(width) && (1...16_384).contains(height) ? (width, height) : nil
    }
}

/// Cells of the screen that a picture fills.
public struct PicturePlace: Hashable, Sendable {
    /// The first row, from 0.
    public var row: Int
    /// The first column, from 0.
    public var column: Int
    /// The height in rows.
    public var rows: Int
    /// The width in columns.
    public var columns: Int
}

extension TopModel {
    /// Where the details page shows the app's snapshot as a picture; nil if the terminal cannot show pictures, the app
    /// has no such snapshot, or the page has no room for it.
    public var picturePlace: PicturePlace? {
        guard drawsPictures, mode == .details, let snapshot, snapshot.app == subject,
            case .picture(_, let width, let height) = snapshot.content, let box = TopLayout.snapshotBox(self)
        else { return nil }
        // A cell is about twice as high as wide.
        let rows = min(box.rows, max(1, box.columns * height / (2 * width)))
        let columns = min(box.columns, max(1, 2 * rows * width / height))
        return PicturePlace(row: box.row, column: box.column, rows: rows, columns: columns)
    }
}

extension TopLayout {
    /// The page's room for the snapshot, below its title.
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

    /// Shows the app's last snapshot at the right of the page.
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
