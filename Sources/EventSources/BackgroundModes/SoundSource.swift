// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux

/// Says which processes play or record sound.
package protocol SoundSource: AnyObject {
    /// Whether an app is there for which this matters: ``onChange`` is called from then on.
    var isFollowed: Bool { get set }
    /// Called when a stream may have begun or ended; a source that must be asked never calls it.
    var onChange: (() -> Void)? { get set }
    /// Calls back, now or soon, with the processes that have running streams.
    func look(_ answer: @escaping ([Int32]) -> Void)
}

/// The kernel's streams of ALSA: those of programs that use a sound card without a server. It must be asked.
final class KernelSound: SoundSource {
    var isFollowed = false
    var onChange: (() -> Void)?
    private let reader: CoalescingReader<Void, [SoundStream]>

    /// - Parameter root: prefix of `/proc`.
    init(_ loop: EventLoop, root: String) {
        reader = CoalescingReader(loop, named: "sound") { SoundStream.running(root: root) }
    }

    func look(_ answer: @escaping ([Int32]) -> Void) { reader.ask { answer($0.map(\.owner)) } }
}
