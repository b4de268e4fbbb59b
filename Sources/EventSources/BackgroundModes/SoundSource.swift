// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux

/// A source that knows which processes play or record sound.
package protocol SoundSource: AnyObject {
    /// Whether any app needs the streams now. The source calls ``onChange`` only while this is true.
    var isFollowed: Bool { get set }
    /// Called when a stream may have begun or ended. A source that cannot watch streams never calls this closure.
    var onChange: (() -> Void)? { get set }
    /// Calls `answer`, at once or later, with the processes that have running streams.
    func look(_ answer: @escaping ([Int32]) -> Void)
}

/// Reads the kernel's ALSA streams, which belong to programs that use a sound card without a sound server. It reports
/// no changes.
final class KernelSound: SoundSource {
    var isFollowed = false
    var onChange: (() -> Void)?
    private let reader: CoalescingReader<Void, [SoundStream]>

    /// - Parameter root: a prefix for the path `/proc`; empty except in tests.
    init(_ loop: EventLoop, root: String) {
        reader = CoalescingReader(loop, named: "sound") { SoundStream.running(root: root) }
    }

    func look(_ answer: @escaping ([Int32]) -> Void) { reader.ask { answer($0.map(\.owner)) } }
}
