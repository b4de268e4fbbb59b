// SPDX-License-Identifier: Apache-2.0

/// Encodes and decodes changes of rows as frames of the journal. A frame contains first the integers (the smallest
/// Int64 stands for NULL), then the texts, both in the order of the table's columns. The frame of a removal contains
/// the key's columns, and the app's name if the key does not include it. Settings that change together are in one
/// frame, so that never only a part of them is saved.
extension StoreJournal {
    /// The kind of a frame that contains all settings that change together.
    static let settings: UInt8 = 13

    func append(_ changes: [RowChange]) {
        let settings = changes.compactMap(\.setting)
        if let first = settings.first {
            return append(
                kind: Self.settings,
                [Int64(settings.count)] + settings.flatMap { [$0.at, $0.isTold ? 1 : 0] },
                [first.key.app] + settings.flatMap { [$0.key.name, $0.value, $0.known] }
            )
        }
        for change in changes {
            switch change {
            case .save(let row): append(kind: row.key.table.shape.frames.save, row.values)
            case .remove(let key, let app):
                let shape = key.table.shape
                let rest = shape.app < shape.keyCount ? [] : [ColumnValue.text(app)]
                append(kind: shape.frames.removal, key.values + rest)
            }
        }
    }

    private func append(kind: UInt8, _ values: [ColumnValue]) {
        var numbers: [Int64] = []
        var texts: [String?] = []
        for value in values {
            switch value {
            case .number(let number): numbers.append(number ?? .min)
            case .text(let text): texts.append(text)
            }
        }
        append(kind: kind, numbers, texts)
    }

    /// Decodes a frame of rows; nil if it is damaged, or of a kind that a later version has added.
    static func rows(kind: UInt8, _ reader: inout Reader) -> MailChange? {
        if kind == settings { return settings(&reader) }
        guard
            let table = RowTable.allCases.first(where: {
                [$0.shape.frames.save, $0.shape.frames.removal].contains(kind)
            })
        else { return nil }
        let shape = table.shape
        if kind == shape.frames.save {
            let values = values(shape.columns, &reader)
            return reader.isShort || table.record.init(values) == nil ? nil : .rows([.save(TableRow(table, values))])
        }
        let isKeyed = shape.app < shape.keyCount
        let columns = Array(shape.columns.prefix(shape.keyCount)) + (isKeyed ? [] : [shape.columns[shape.app]])
        let values = values(columns, &reader)
        guard !reader.isShort, let app = values[isKeyed ? shape.app : shape.keyCount].text else { return nil }
        return .rows([.remove(TableRow.Key(table: table, values: Array(values.prefix(shape.keyCount))), app: app)])
    }

    private static func values(_ columns: [TableShape.Column], _ reader: inout Reader) -> [ColumnValue] {
        let numbers = columns.map { column -> ColumnValue? in
            guard !column.isText else { return nil }
            let number = reader.number()
            return .number(number == .min ? nil : number)
        }
        return numbers.map { $0 ?? .text(reader.text()) }
    }

    private static func settings(_ reader: inout Reader) -> MailChange? {
        let count = reader.number()
        // Each setting takes at least 28 bytes: a greater count is invalid.
        guard !reader.isShort, count >= 0, count <= Int64(reader.fields.count / 28) else { return nil }
        let numbers = (0..<count * 2).map { _ in reader.number() }
        guard let app = reader.text() else { return nil }
        var settings: [StoredSetting] = []
        for index in 0..<Int(count) {
            guard let name = reader.text() else { return nil }
            var setting = StoredSetting(app: app, name: name, value: reader.text(), at: numbers[index * 2])
            setting.known = reader.text()
            setting.isTold = numbers[index * 2 + 1] != 0
            settings.append(setting)
        }
        return reader.isShort ? nil : .settings(settings)
    }
}

extension RowChange {
    /// The setting that the change saves. For a removal, the same setting without a value. Nil if the change belongs to
    /// another table.
    fileprivate var setting: StoredSetting? {
        switch self {
        case .save(let row): row.key.table == .settings ? StoredSetting(row.values) : nil
        case .remove(let key, let app):
            key.table == .settings
                ? StoredSetting(app: app, name: key.values[1].text ?? "", value: nil, at: 0) : nil
        }
    }
}
