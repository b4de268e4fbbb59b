// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux

/// Waits until a device node, such as that of a terminal, is readable, without reading it.
///
/// A terminal or FIFO stays open while an app needs the watch, because closing the last descriptor would lose pending
/// data and the terminal's settings. For other devices each open has its own data, so they are open only while this
/// waits.
final class NodeWatch {
    private let loop: EventLoop
    private let work: BackgroundWorker
    private let node: String
    private let heard: () -> Void
    /// Called with the descriptor of a terminal or FIFO that was opened and must survive torpord.
    private let keep: (Int32) -> Void
    private(set) var descriptor: Descriptor?
    private var source: IOSource?
    private var isOpening = false
    private(set) var isWaiting = false
    /// Whether the other side is gone, so that the node is useless until the device appears again.
    private var isDead = false
    /// Why the node cannot be opened or watched, as a sentence; nil if it can.
    private(set) var trouble: String?

    /// - Parameter descriptor: the descriptor of the node that an earlier torpord had opened; nil if there is none.
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

    // Removes the node from epoll before closing the descriptor: the keeper may have a copy, and then epoll would
    // keep reporting it.
    deinit { source?.cancel() }

    /// Starts to wait: calls `heard` once when the node has data to read.
    func wait() {
        guard !isWaiting, !isDead else { return }
        isWaiting = true
        if descriptor == nil { open() } else { watch() }
    }

    /// Stops waiting, and closes the node if it need not stay open.
    func rest() {
        isWaiting = false
        source = nil
        if let descriptor, !Self.isShared(descriptor) { self.descriptor = nil }
    }

    /// Stops waiting, and returns the descriptor of a node that must stay open; nil for other nodes.
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
        // After a hangup the node counts as readable too, but has no data.
        let isOver = events.contains(.hangup) && (descriptor.map { File.readableBytes($0.raw) } ?? 0) == 0
        guard events.contains(.readable), !isOver else {
            isDead = true
            descriptor = nil
            return
        }
        // Call `heard` once per suspension, even if the app does not read the data.
        heard()
    }
}
