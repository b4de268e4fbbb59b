// SPDX-License-Identifier: Apache-2.0

import Configuration
import DesktopProtocol
import Engine
import EventLoop
import EventSources
import Lifecycle
import TorporAPI

/// Which processes play or record sound through the session's PipeWire, as torpor-desktop reports.
///
/// The session's user can forge these reports, so a stream counts for an app only if its process belongs to that app.
final class SessionSound: ShellRoom, SoundSource {
    unowned(unsafe) let supervisor: Supervisor
    var onChange: (() -> Void)?
    /// Called when the helper must start or stop following sound.
    var onFollow: () -> Void = {}
    var isFollowed = false { didSet { if isFollowed != oldValue { followedChanged(isFollowedForFocus) } } }
    /// Whether streams are needed because sound of other programs may interrupt apps.
    var isFollowedForFocus = false { didSet { if isFollowedForFocus != oldValue { followedChanged(isFollowed) } } }
    /// Whether the helper must follow sound.
    var isWanted: Bool { isFollowed || isFollowedForFocus }
    /// Called when streams have begun or ended, or are no longer known.
    var onStreams: () -> Void = {}
    /// All running streams; nil while they are not known.
    private(set) var streams: [DesktopSound]?
    /// Why streams cannot be followed; nil if they can be followed, or if this is not known.
    private(set) var problem: String? {
        didSet {
            guard problem != oldValue else { return }
            if let problem { log.info("streams of PipeWire are not seen: \(problem)") }
        }
    }
    /// Callers that wait for the helper's first report.
    private var waiting: [([Int32]) -> Void] = []
    private var timer: TimerSource?

    /// The longest time that callers wait for the first report of a helper, counted from the first call.
    static let patience = Duration.seconds(2)

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    private func followedChanged(_ isFollowedOtherwise: Bool) {
        guard !isFollowedOtherwise else { return }
        if !isWanted { forget() }
        onFollow()
    }

    func look(_ answer: @escaping ([Int32]) -> Void) {
        guard isWanted, streams == nil, problem == nil, !isEnding else {
            return answer(streams?.map(\.pid) ?? [])
        }
        waiting.append(answer)
        if timer == nil { timer = try? loop.timer { [weak self] in self?.answer() } }
        if timer?.deadline == nil { timer?.arm(after: Self.patience) }
    }

    /// Called when the helper reports all running streams.
    func heard(_ streams: [DesktopSound]) {
        guard isWanted, streams != self.streams else { return }
        problem = nil
        self.streams = streams
        answer()
        onChange?()
        onStreams()
    }

    /// Called when the helper reports whether it can follow streams: `problem` is the reason if it cannot, nil if it
    /// can again.
    func isHeard(_ problem: String?) {
        guard isWanted else { return }
        self.problem = problem.map { String($0.prefix(400)) }
        guard problem != nil else { return }
        let had = streams
        streams = nil
        answer()
        if had != nil { onChange?() }
        onStreams()
    }

    /// Called when the helper has ended, and with it the source of these reports. The next helper reports everything
    /// again.
    func forget() {
        (streams, problem) = (nil, nil)
        if !isWanted { answer() }
    }

    private func answer() {
        timer?.disarm()
        let answers = waiting
        waiting = []
        for answer in answers { answer(streams?.map(\.pid) ?? []) }
    }

    /// The check of sound for `torpor doctor`; nil if no app needs sound to be followed.
    ///
    /// - Parameters:
    ///   - obstacle: why there is no session; nil if there is one.
    ///   - trouble: why there is no helper; nil if there is one.
    ///   - session: a description of the session and the helper.
    func check(obstacle: String?, trouble: String?, session: String) -> DoctorCheck? {
        guard isWanted || apps.contains(where: { $0.specification.backgroundModes.contains(.audio) }) else {
            return nil
        }
        let kernel = "by /proc/asound"
        if let obstacle { return DoctorCheck(name: "sound", ok: true, value: "\(kernel) only: \(obstacle)") }
        guard isWanted else {
            let value = "\(kernel), and by PipeWire while an app with the mode audio is in the background"
            return DoctorCheck(name: "sound", ok: true, value: value)
        }
        let problem = trouble ?? problem
        return DoctorCheck(
            name: "sound",
            ok: problem == nil,
            value: problem == nil ? "\(kernel), and by PipeWire in \(session)" : kernel,
            message: problem.map { "streams of PipeWire are not seen: \($0)" }
        )
    }
}
