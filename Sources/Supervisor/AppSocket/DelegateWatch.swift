// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux

/// Notices the end of a delegate's process. The end of its connection does not always show that: a process that the
/// delegate has forked keeps a copy of the connection's descriptor.
final class DelegateWatch {
    private let process: Descriptor
    private var source: IOSource?
    private var timer: TimerSource?

    /// Nil if the process has ended already, or if descriptors are short: then only the end of the connection counts.
    ///
    /// - Parameters:
    ///   - delay: how long after the end to call `ended`, so that what the process has sent last is read before.
    ///   - ended: called once.
    init?(_ pid: Int32, _ loop: EventLoop, delay: Duration, _ ended: @escaping () -> Void) {
        guard let process = try? Pidfd.open(pid), !Pidfd.hasEnded(process.raw) else { return nil }
        self.process = process
        timer = try? loop.timer(ended)
        source = try? loop.watch(process.raw, .readable) { [weak self] _ in
            // The descriptor stays readable.
            self?.source?.cancel()
            self?.timer?.arm(after: delay)
        }
        if source == nil || timer == nil { return nil }
    }

    deinit { source?.cancel() }

    /// Whether the process has ended.
    var hasEnded: Bool { Pidfd.hasEnded(process.raw) }
}
