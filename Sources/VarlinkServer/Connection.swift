// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux
import Varlink

/// The connection of one client. While a call is being handled, no further call is read: a call that the client sends
/// early stays in the kernel's buffer.
final class Connection {
    let number: UInt64
    let peer: Peer
    /// Why the client is refused; nil if it is accepted.
    private var refusal: VarlinkServer.Refusal?
    /// Whether the server still decides whether the client is refused. Until then, nothing is read.
    private var isUndecided = false
    var isRefused: Bool { refusal != nil }
    /// The account of the client's user; nil if the user is exempt.
    private let share: UserShare?
    /// How many bytes this connection has added to the user's account.
    private var counted = (inbound: 0, outbound: 0)
    /// Whether the client's user has used up its share of the loop's time. If so, nothing is read until the share is
    /// replenished.
    private var waitsForShare = false
    private let stream: StrangerStream
    private let service: VarlinkService
    private weak var server: VarlinkServer?
    private var source: IOSource?
    private var framer: MessageFramer
    /// The call being handled.
    private var current: Reply?
    private var outbound = OutboundBuffer()
    /// Whether the client has shut down its sending side. It may still read.
    private var isAtEnd = false
    /// Whether to close the connection as soon as everything is written.
    private var isEnding = false
    /// Whether calls wait because the client has not read its replies yet.
    private var isHeldBack = false
    /// Whether anything that the client sends while a call is being answered ends that call with an error.
    private var refusesCalls = false
    /// Whether ``VarlinkServer/unterminated`` was called for this connection.
    private var wasUnterminated = false
    private var wasForeign = false
    private var isPumping = false
    private var isPumpScheduled = false
    private var events: IOEvents = .readable

    private static let readAhead = 256 << 10

    init?(
        number: UInt64,
        stream: StrangerStream,
        peer: Peer,
        refusal: VarlinkServer.Refusal?,
        share: UserShare?,
        server: VarlinkServer
    ) {
        self.number = number
        self.stream = stream
        service = server.service
        self.peer = peer
        self.refusal = refusal
        self.share = share
        self.server = server
        framer = MessageFramer(limit: server.limits.messageBytes)
        let watch = try? server.loop.watch(stream.raw, .readable) { [weak self] events in self?.handle(events) }
        guard let watch else { return nil }
        source = watch
    }

    deinit { close() }

    /// Reads nothing until ``decide(_:)`` is called.
    func waitForDecision() {
        isUndecided = true
        updateEvents()
    }

    /// Accepts the client, or refuses it with this error.
    func decide(_ refusal: VarlinkServer.Refusal?) {
        self.refusal = refusal
        isUndecided = false
        updateEvents()
    }

    /// Whether the client has closed the connection, even if that was not reported yet.
    var isHungUp: Bool { source == nil || !Descriptor.readiness(stream.raw).isDisjoint(with: [.hangup, .error]) }

    /// Closes the connection at once, and notifies the call that is being handled.
    func close() {
        guard let source else { return }
        source.cancel()
        self.source = nil
        service.close(stream, of: peer.uid)
        outbound = OutboundBuffer()
        framer = MessageFramer(limit: 0)
        count()
        let reply = current
        current = nil
        server?.forget(self)
        reply?.connectionClosed()
    }

    private func handle(_ events: IOEvents) {
        // Keep this object alive: the server may release a closed connection while this method runs.
        withExtendedLifetime(self) {
            if events.contains(.writable) { flush() }
            if events.contains(.readable) {
                if isWatchedForCalls { readStray() } else if canRead { _ = read() }
            }
            if !events.isDisjoint(with: [.hangup, .error]) {
                // Still handle calls that the client sent before it closed the connection, unless its user has used up
                // its share.
                while canRead, read() {}
                close()
            }
            updateEvents()
        }
    }

    private var canRead: Bool {
        source != nil && current == nil && !isAtEnd && !isEnding && !isHeldBack && !waitsForShare && !isUndecided
    }

    private var isWatchedForCalls: Bool { refusesCalls && source != nil && current != nil && !isAtEnd && !isEnding }

    /// Ends the call that is being answered as soon as the client sends something before the call's last reply.
    func refuseCalls() {
        refusesCalls = true
        // The client may have sent its next call together with the call that is being answered.
        if framer.waitingBytes > 0 { server?.loop.later { [weak self] in self?.refuseStray(nil) } }
        updateEvents()
    }

    private func readStray() {
        guard let server else { return }
        do throws(Errno) {
            guard let count = try receive() else { return }
            guard count > 0 else {
                isAtEnd = true
                return
            }
            let bytes = server.buffer[..<count]
            let message = bytes.firstIndex(of: 0).map { Array(bytes[..<$0]) }
            let json = message.flatMap { try? JSON.parse($0) }
            refuseStray(json.flatMap { try? VarlinkCall(json: $0) }?.method)
        } catch {
            close()
        }
    }

    private func refuseStray(_ method: String?) {
        guard isWatchedForCalls, let refusal = server?.strayCall?(number, method) else { return }
        isEnding = true
        current?.fail(refusal.error, refusal.parameters)
    }

    /// Reads once; false if there was nothing to read.
    private func read() -> Bool {
        guard let server else { return false }
        do throws(Errno) {
            guard let count = try receive() else { return false }
            if count == 0 { isAtEnd = true }
            if let refusal, count > 0 {
                refuse(refusal.error, refusal.parameters)
                flush()
                return false
            }
            let isFirst = framer.waitingBytes == 0
            framer.append(UnsafeRawBufferPointer(rebasing: server.buffer[..<count]))
            if isFirst, !wasUnterminated, let report = server.unterminated {
                wasUnterminated = Self.isUnterminated(server.buffer[..<count])
                if wasUnterminated { report(peer) }
            }
            if isFirst, !wasForeign, let report = server.foreign {
                wasForeign = Self.isForeign(server.buffer[..<count])
                if wasForeign { report(peer) }
            }
        } catch {
            close()
            return false
        }
        pump()
        return true
    }

    /// Whether the bytes are a JSON object with a newline behind it.
    private static func isUnterminated(_ bytes: Slice<UnsafeMutableRawBufferPointer>) -> Bool {
        guard bytes.last == UInt8(ascii: "\n"), bytes.first == UInt8(ascii: "{") else { return false }
        return (try? JSON.parse(Array(bytes))) != nil
    }

    /// Whether the bytes begin with something else than a JSON object.
    private static func isForeign(_ bytes: Slice<UnsafeMutableRawBufferPointer>) -> Bool {
        let first = bytes.first { $0 != UInt8(ascii: " ") && !(0x09...0x0d).contains($0) }
        return first.map { $0 != UInt8(ascii: "{") } ?? false
    }

    /// Receives data into the service's buffer; nil if there is none. Closes the connection if descriptors come with it.
    private func receive() throws(Errno) -> Int? {
        switch try stream.read(into: service.buffer) {
        case .nothing: return nil
        case .bytes(let count): return count
        case .descriptors:
            close()
            return nil
        }
    }

    /// Handles calls until there are no more, or until one must be answered later.
    private func pump() {
        guard !isPumping else { return }
        isPumping = true
        while source != nil, current == nil, !isEnding, !waitsForShare {
            if let share, share.isOverdrawn {
                waitsForShare = true
                share.wait { [weak self] in self?.shareIsBack() }
                break
            }
            guard outbound.count < Self.readAhead else {
                isHeldBack = true
                break
            }
            let message: ArraySlice<UInt8>?
            do throws(MessageFramer.TooLong) {
                message = try framer.next()
            } catch {
                refuse(FieldError(field: "", problem: "\(error)"))
                break
            }
            guard let message else {
                if isAtEnd { isEnding = true }
                break
            }
            let began = server?.loop.now ?? .zero
            handle(message)
            if let share, let server { share.spend(server.loop.now - began) }
        }
        isPumping = false
        count()
        if let share, let server, source != nil, share.inbound > server.limits.inboundBytesOfUser { return close() }
        flush()
        updateEvents()
    }

    private func shareIsBack() {
        guard waitsForShare else { return }
        waitsForShare = false
        pump()
    }

    /// Updates the share of this connection in the user's account (``UserShare``).
    private func count() {
        guard let share else { return }
        let now = (inbound: framer.waitingBytes, outbound: outbound.count)
        share.inbound += now.inbound - counted.inbound
        share.outbound += now.outbound - counted.outbound
        counted = now
    }

    private func handle(_ message: ArraySlice<UInt8>) {
        let call: VarlinkCall
        do {
            call = try VarlinkCall(json: JSON.parse(message))
        } catch let error as FieldError {
            return refuse(error)
        } catch {
            // The client does not send JSON, so it would not understand an error in JSON either: close the connection.
            guard message.first == UInt8(ascii: "{") else { return close() }
            return refuse(FieldError(field: "", problem: "\(error)"))
        }
        let oneway = call.oneway
        let reply = Reply(
            more: call.more && !oneway,
            connection: number,
            output: { [weak self] response in
                self?.respond(continues: response.continues, silently: oneway) { response.append(to: &$0) }
            },
            text: { [weak self] write in
                self?.respond(continues: false, silently: oneway) { writer in
                    VarlinkResponse.appendResults(to: &writer, continues: false, write)
                }
            }
        )
        current = reply
        server?.dispatch(call, from: self, reply)
    }

    /// Replies with an error and closes the connection.
    private func refuse(_ error: FieldError) {
        refuse(
            VarlinkErrorName.invalidParameter,
            ["parameter": .string(error.field), "message": .string("\(error)")]
        )
    }

    private func refuse(_ error: String, _ parameters: JSON) {
        outbound.append(sending: { _ in 0 }) { VarlinkResponse(parameters: parameters, error: error).append(to: &$0) }
        isEnding = true
    }

    private func respond(continues: Bool, silently: Bool, _ write: (inout JSONWriter) -> Void) {
        guard source != nil else { return }
        if !continues { current = nil }
        if !silently {
            let waiting = outbound.count
            // Take the buffer out of this object first, because `write` may close this connection.
            var buffer = OutboundBuffer()
            swap(&buffer, &outbound)
            buffer.append(sending: { self.sendAhead($0) }, write)
            guard source != nil else { return }
            swap(&buffer, &outbound)
            if !isPumping { flush() }
            current?.isUnread = !outbound.isEmpty
            // A single reply may be larger than the limit, as long as the client reads it. Close the connection if the
            // client leaves more than the limit unread.
            if source != nil, waiting > 0, outbound.count > server?.limits.outboundBytes ?? 0 { return close() }
            count()
            if let share, source != nil, share.outbound > server?.limits.outboundBytesOfUser ?? 0 { return close() }
        }
        // pump() sends what is left, and only then is it clear whether to wait until the socket is writable.
        guard !isPumping else { return }
        if current == nil { pumpSoon() }
        updateEvents()
    }

    /// Sends bytes of a reply that is still being written; returns how many. Ignores errors, since sending the rest
    /// reports them again.
    private func sendAhead(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard source != nil, let count = try? Sockets.send(stream.raw, bytes) else { return 0 }
        return count
    }

    /// Schedules the handling of the next call for when this call's handler has returned.
    private func pumpSoon() {
        guard !isPumpScheduled else { return }
        isPumpScheduled = true
        server?.loop.later { [weak self] in
            guard let self else { return }
            isPumpScheduled = false
            pump()
        }
    }

    private func tellThatAllIsReadSoon() {
        server?.loop.later { [weak self] in
            guard let self, let current, outbound.isEmpty else { return }
            current.hasBeenRead()
        }
    }

    private func flush() {
        guard source != nil else { return }
        while !outbound.isEmpty {
            do throws(Errno) {
                let count = try outbound.withBytes { bytes throws(Errno) in try Sockets.send(stream.raw, bytes) }
                guard let count else { break }
                outbound.drop(count)
            } catch {
                return close()
            }
        }
        count()
        guard outbound.isEmpty else { return }
        if isEnding, current == nil { return close() }
        if current?.isUnread == true { tellThatAllIsReadSoon() }
        if isHeldBack, current == nil, !isPumping {
            isHeldBack = false
            pumpSoon()
        }
    }

    private func updateEvents() {
        guard let source else { return }
        var wanted: IOEvents = []
        if canRead || isWatchedForCalls { wanted.insert(.readable) }
        if !outbound.isEmpty { wanted.insert(.writable) }
        guard wanted != events else { return }
        events = wanted
        source.setEvents(wanted)
    }
}
