// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux

/// Waits until a device node, such as that of a terminal, is readable. Does not read it.
///
/// A terminal or FIFO stays open as long as this object exists: if its last descriptor were closed, pending data and
/// the terminal's settings would be lost. Any other device has separate data for each open(2), so its node is open
/// only while this object waits.
final class NodeWatch {
    private let loop: EventLoop
    private let work: BackgroundWorker
    private let node: String
    private let heard: () -> Void
    /// Called when a terminal or FIFO was opened, so that its descriptor stays open after the end of this torpord.
    private let keep: (Int32) -> Void
    private(set) var descriptor: Descriptor?
    private var source: IOSource?
    private var isOpening = false
    private(set) var isWaiting = false
    /// Whether the device has hung up. After a hangup the node is useless until the device appears again.
    private var isDead = false
    /// An error text if the node cannot be opened or watched; nil if it can.
    private(set) var trouble: String?

    /// - Parameter descriptor: the node's descriptor if an earlier torpord had opened the node; otherwise nil.
    init(
        _ loop: EventLoop,
        _ work: BackgroundWorker,
        _ node: String,
        taking descriptor: Descriptor?,
        keep: @escaping (Int32) -> Void,
        _ heard: @escaping () -> Void
    ) {
        self.descriptor = descriptor
        self.keep = keep
        self.loop = loop
        self.work = work
        self.node = node
        self.heard = heard
    }

    // Remove the descriptor from epoll before it is closed. If torpor-keeper holds a copy, epoll would otherwise keep
    // reporting the node.
    deinit { source?.cancel() }

    /// Starts to wait. Calls `heard` once, when the node has data to read.
    func wait() {
        guard !isWaiting, !isDead else { return }
        isWaiting = true
        if descriptor == nil { open() } else { watch() }
    }

    /// Stops waiting. Closes the node unless it is a terminal or FIFO.
    func rest() {
        isWaiting = false
        source = nil
        if let descriptor, !Self.isShared(descriptor) { self.descriptor = nil }
    }

    /// Stops waiting. Returns the descriptor of a terminal or FIFO, which must stay open; nil for other nodes.
    func handOver() -> Descriptor? {
        rest()
        defer { descriptor = nil }
        return descriptor
    }

    private struct Opened: Sendable {
        let raw: Int32
        let failure: Errno?
    }

    private func open() {
        guard !isOpening else { return }
        isOpening = true
        let node = node
        work.ask {
            do throws(Errno) {
                return Opened(raw: try File.openNode(node).take(), failure: nil)
            } catch {
                return Opened(raw: -1, failure: error)
            }
        } _: { [weak self] (opened: Opened) in
            let descriptor = opened.raw >= 0 ? Descriptor(owning: opened.raw) : nil
            guard let self else { return }
            self.isOpening = false
            self.trouble = opened.failure.map { "\(node) cannot be watched for data: \($0)" }
            guard let descriptor else {
                self.isWaiting = false
                return
            }
            guard self.isWaiting || Self.isShared(descriptor) else { return }
            self.descriptor = descriptor
            if Self.isShared(descriptor) { self.keep(descriptor.raw) }
            if self.isWaiting { self.watch() }
        }
    }

    private static func isShared(_ descriptor: Descriptor) -> Bool {
        File.isTerminal(descriptor.raw) || (try? File.status(descriptor: descriptor.raw))?.kind == .fifo
    }

    private func watch() {
        guard let descriptor, source == nil else { return }
        do throws(Errno) {
            source = try loop.watch(descriptor.raw, .readable) { [weak self] in self?.ready($0) }
        } catch {
            isWaiting = false
            trouble = "\(node) cannot be watched for data: \(error)"
        }
    }

    private func ready(_ events: IOEvents) {
        source = nil
        isWaiting = false
        // After a hangup, epoll reports the node as readable although it has no data.
        let isOver = events.contains(.hangup) && (descriptor.map { File.readableBytes($0.raw) } ?? 0) == 0
        guard events.contains(.readable), !isOver else {
            isDead = true
            descriptor = nil
            return
        }
        // The source is removed above, so `heard` is called once per wait, even if the app does not read the data.
        heard()
    }
}
