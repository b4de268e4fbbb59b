// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux
import TorporAPI

/// States that clients send part by part, until they are complete. The number of imports is bounded, and an import
/// that is not continued is dropped.
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

    /// Identifies an import by app and connection, so that the parts of two clients that import a state of the same
    /// app are not mixed.
    private struct Key: Hashable {
        var app: String
        var connection: UInt64
    }

    private var imports: [Key: Import] = [:]

    /// Takes a part; returns the whole state once it is complete, nil before.
    ///
    /// - Throws: ``ArchiveFailure/refused(_:)`` if the part does not continue an import, or if there are too many.
    func take(
        _ request: ImportStateRequest,
        from connection: UInt64,
        now: Duration
    ) throws(ArchiveFailure) -> [UInt8]? {
        let key = Key(app: request.app, connection: connection)
        imports = imports.filter { now - $0.value.touched < Self.patience }
        if request.offset == 0 {
            imports[key] = nil
            guard imports.count < Self.most else {
                throw .refused("\(Self.most) states are being imported already: try again in a moment")
            }
            imports[key] = Import(bytes: [], total: Int(request.bytes), touched: now)
        }
        guard var one = imports.removeValue(forKey: key), one.total == Int(request.bytes) else {
            throw .refused("no import of that state is in progress: begin again with offset 0")
        }
        guard Int(request.offset) == one.bytes.count else {
            throw .refused("the part does not continue the import: begin again with offset 0")
        }
        one.bytes += request.data
        one.touched = now
        if one.bytes.count == one.total { return one.bytes }
        imports[key] = one
        return nil
    }
}
