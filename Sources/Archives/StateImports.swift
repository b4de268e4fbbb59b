// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux
import TorporAPI

/// States that clients send part by part, until they are complete. Their number is bounded, and one that is not
/// continued is dropped.
final class StateImports {
    private struct Import {
        var bytes: [UInt8]
        var total: Int
        var touched: Duration
    }

    /// The most imports at once.
    static let most = 2
    /// An import that is not continued for this time is dropped when another begins.
    static let patience = Duration.seconds(30)

    private var imports: [String: Import] = [:]

    /// Takes a part; returns the whole state once it is complete, nil before.
    ///
    /// - Throws: ``ArchiveFailure/refused(_:)`` if the part does not continue an import, or if there are too many.
    func take(_ request: ImportStateRequest, now: Duration) throws(ArchiveFailure) -> [UInt8]? {
        imports = imports.filter { now - $0.value.touched < Self.patience }
        if request.offset == 0 {
            imports[request.app] = nil
            guard imports.count < Self.most else {
                throw .refused("\(Self.most) states are being imported already: try again in a moment")
            }
            imports[request.app] = Import(bytes: [], total: Int(request.bytes), touched: now)
        }
        guard var one = imports.removeValue(forKey: request.app), one.total == Int(request.bytes) else {
            throw .refused("no import of that state is in progress: begin again with offset 0")
        }
        let end = Int(request.offset) + request.data.count
        // A part that ends where the stored bytes end is a repetition, by a client that lost its connection before the
        // reply. Do not store it again.
        if end != one.bytes.count || request.data.isEmpty {
            guard Int(request.offset) == one.bytes.count else {
                throw .refused("the part does not continue the import: begin again with offset 0")
            }
            one.bytes += request.data
        }
        one.touched = now
        if one.bytes.count == one.total { return one.bytes }
        imports[request.app] = one
        return nil
    }
}
