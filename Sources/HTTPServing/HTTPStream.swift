// SPDX-License-Identifier: Apache-2.0

import CMicrohttpd
import Linux

/// A body that is produced over time: any thread appends to it, and the server's thread sends it. If a client reads
/// too slowly, it is disconnected.
public final class HTTPStream: Sendable {
    private struct State {
        var pending = PendingBytes()
        var connection: OpaquePointer?
        var isSuspended = false
        var isEnded = false
        var isCut = false
    }

    private let state = Monitor(State())
    private let limit: Int
    private let onEnd: @Sendable () -> Void

    /// Creates an empty stream.
    ///
    /// - Parameters:
    ///   - limit: the most unsent bytes. If there are more, the client is disconnected.
    ///   - onEnd: called once, when the stream is over.
    public init(limit: Int, onEnd: @escaping @Sendable () -> Void) {
        self.limit = limit
        self.onEnd = onEnd
    }

    /// Appends bytes. Returns false if no client reads the stream any longer.
    @discardableResult
    public func send(_ bytes: [UInt8]) -> Bool {
        state.withLock { state in
            guard !state.isEnded, !state.isCut else { return false }
            if state.pending.count + bytes.count > limit {
                state.isCut = true
                state.pending = PendingBytes()
                if let connection = state.connection { torpor_http_cut(connection) }
            } else {
                state.pending.append(bytes)
            }
            Self.resume(&state)
            return !state.isCut
        }
    }

    /// Ends the stream once the bytes appended so far are sent.
    public func end() {
        state.withLock { state in
            state.isEnded = true
            Self.resume(&state)
        }
    }

    private static func resume(_ state: inout State) {
        guard state.isSuspended, let connection = state.connection else { return }
        state.isSuspended = false
        MHD_resume_connection(connection)
    }

    /// The response that sends the stream over a connection; nil if the process is out of memory.
    func response(_ connection: OpaquePointer) -> OpaquePointer? {
        state.withLock { $0.connection = connection }
        let context = Unmanaged.passRetained(self).toOpaque()
        let response = MHD_create_response_from_callback(
            .max,
            32 << 10,
            { context, _, buffer, room in
                guard let context, let buffer else { return -2 }
                let stream = Unmanaged<HTTPStream>.fromOpaque(context).takeUnretainedValue()
                return stream.read(UnsafeMutableRawBufferPointer(start: buffer, count: room))
            },
            context,
            { context in
                guard let context else { return }
                Unmanaged<HTTPStream>.fromOpaque(context).takeRetainedValue().close()
            }
        )
        if response == nil { Unmanaged<HTTPStream>.fromOpaque(context).takeRetainedValue().close() }
        return response
    }

    /// Copies unsent bytes and returns their number. Returns -1 at the end of the stream, -2 for an abort, and 0 if
    /// the connection is suspended until there are more bytes.
    private func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        state.withLock { state in
            if state.isCut { return -2 }
            let part = state.pending.first(buffer.count)
            if !part.isEmpty {
                buffer.copyBytes(from: part)
                state.pending.drop(part.count)
                return part.count
            }
            if state.isEnded { return -1 }
            guard let connection = state.connection else { return -2 }
            state.isSuspended = true
            MHD_suspend_connection(connection)
            return 0
        }
    }

    private func close() {
        state.withLock { state in
            state.connection = nil
            state.isEnded = true
            state.isSuspended = false
            state.pending = PendingBytes()
        }
        onEnd()
    }
}
