// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux

/// Waits until something can be read from a node, such as that of a terminal, without reading it.
///
/// A terminal or a pipe is kept open from then on, as long as there is anybody to wait for it: what has come would be
/// lost with its last opener, and so would the terminal's settings. Anything else has news for each opener of its own: it
/// is opened while it is waited for, and not longer.
final class NodeWatch {
    private let loop: EventLoop
    private let work: BackgroundWorker
    private let node: String
    private let heard: () -> Void
    /// A terminal or a FIFO was opened, which is not to be lost with torpord.
    private let keep: (Int32) -> Void
    private(set) var descriptor: Descriptor?
    private var source: IOSource?
    private var isOpening = false
    private(set) var isWaiting = false
    /// The other side is gone; it is of no use until the device is there anew.
    private var isDead = false
    /// Why it cannot be opened, in a sentence.
    private(set) var trouble: String?

    /// - Parameter descriptor: what an earlier torpord had opened.
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

    // Before the descriptor is closed, of which the keeper may have another.
    deinit { source?.cancel() }

    /// Says once when there is something to read.
    func wait() {
        guard !isWaiting, !isDead else { return }
        isWaiting = true
        if descriptor == nil { open() } else { watch() }
    }

    /// Waits no more.
    func rest() {
        isWaiting = false
        source = nil
        if let descriptor, !Self.isShared(descriptor) { self.descriptor = nil }
    }

    /// Waits no more, and hands over what is not to be lost.
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
        // One that was hung up can be read too, to no purpose.
        let isOver = events.contains(.hangup) && (descriptor.map { File.readableBytes($0.raw) } ?? 0) == 0
        guard events.contains(.readable), !isOver else {
            isDead = true
            descriptor = nil
            return
        }
        // Not level: an app that does not read it is told once for each sleep.
        heard()
    }
}
