// SPDX-License-Identifier: Apache-2.0

import WireText

/// Values by name, in the order in which the names were first added. Names are compared by their bytes.
struct OrderedTable<Value> {
    private(set) var members: [(key: String, value: Value)] = []
    private var places: [WireText: Int] = [:]

    init() {}

    /// Creates a table. If a name has several values, the last one is kept.
    init(_ members: some Sequence<(key: String, value: Value)>) {
        for (key, value) in members { self[key] = value }
    }

    /// The value of a name. Assigning `nil` has no effect: an existing value stays.
    subscript(key: String) -> Value? {
        get { places[WireText(key)].map { members[$0].value } }
        set {
            guard let newValue else { return }
            if let place = places[WireText(key)] {
                members[place].value = newValue
            } else {
                places[WireText(key)] = members.count
                members.append((key, newValue))
            }
        }
    }

    var keys: [String] { members.map(\.key) }
    var isEmpty: Bool { members.isEmpty }

    func filtered(_ isLeft: ((key: String, value: Value)) -> Bool) -> OrderedTable {
        OrderedTable(members.filter(isLeft))
    }

    func mapValues<Other>(_ change: (Value) -> Other) -> OrderedTable<Other> {
        var table = OrderedTable<Other>()
        table.members = members.map { ($0.key, change($0.value)) }
        table.places = places
        return table
    }
}

extension OrderedTable: Sendable where Value: Sendable {}

extension OrderedTable: ExpressibleByArrayLiteral {
    init(arrayLiteral members: (key: String, value: Value)...) { self.init(members) }
}

extension OrderedTable: Sequence {
    func makeIterator() -> IndexingIterator<[(key: String, value: Value)]> { members.makeIterator() }
}
