// SPDX-License-Identifier: Apache-2.0

/// Memory for the texts of one statement at a time. SQLite reads them here until the statement is reset, so that it
/// need not allocate memory for each.
final class BoundTexts {
    /// Enough for the texts of most events; a statement with longer ones allocates memory for these.
    static let capacity = 2_048

    private let memory = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 1)
    private var used = 0
    /// The statement that has texts here; nil if none has.
    private var owner: OpaquePointer?

    deinit { memory.deallocate() }

    /// Copies a text of a statement, until the statement releases its texts. Returns nil if another statement has texts
    /// here, or if there is too little room.
    func copy(_ text: UnsafeBufferPointer<UInt8>, for statement: OpaquePointer) -> UnsafePointer<CChar>? {
        guard owner == nil || owner == statement, text.count <= Self.capacity - used else { return nil }
        owner = statement
        let place = memory + used
        if let start = text.baseAddress { place.copyMemory(from: start, byteCount: text.count) }
        used += text.count
        return UnsafePointer(place.bindMemory(to: CChar.self, capacity: text.count))
    }

    /// Frees the memory for the texts of other statements, if it has those of this one.
    func release(from statement: OpaquePointer) {
        guard owner == statement else { return }
        owner = nil
        used = 0
    }
}
