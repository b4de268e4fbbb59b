// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux
import LoginManager

/// What transfers want to know of the machine's network. It is followed only while one of them waits for that.
final class TransferNetwork {
    private let loop: EventLoop
    /// Whether the link is metered is otherwise than before.
    private let onLink: () -> Void
    /// There is a way to other machines that was not there.
    private let onWay: () -> Void
    private var link: MeteredLink?
    private var routes: RouteWatch?
    private var source: IOSource?
    private var timer: TimerSource?
    private var told = Duration.zero

    /// Where routes come and go all the time, as with containers, they are news only so often.
    private static let pause = Duration.seconds(5)

    init(_ loop: EventLoop, onLink: @escaping () -> Void, onWay: @escaping () -> Void) {
        self.loop = loop
        self.onLink = onLink
        self.onWay = onWay
    }

    /// Whether the link is metered; nil as long as that is not known, or not followed.
    var isMetered: Bool? { link?.isMetered }

    /// Begins, or ends, to follow whether the link is metered.
    func followLink(_ isWanted: Bool) {
        guard isWanted != (link != nil) else { return }
        link = isWanted ? MeteredLink(loop) : nil
        link?.onChange = onLink
    }

    /// Begins, or ends, to follow the ways to other machines. Where they cannot be followed nothing is lost but time.
    func followWays(_ isWanted: Bool) {
        guard isWanted != (source != nil) else { return }
        guard isWanted, let made = try? RouteWatch() else { return endWays() }
        source = try? loop.watch(made.descriptor.raw, .readable) { [weak self] _ in self?.heard() }
        routes = consume made
    }

    private func endWays() {
        source?.cancel()
        source = nil
        routes = nil
        timer?.cancel()
        timer = nil
    }

    private func heard() {
        do throws(Errno) {
            guard try routes?.hasNews() ?? false, timer == nil else { return }
        } catch {
            return endWays()
        }
        // Names can be resolved, and addresses are in use, a moment after the route is there.
        timer = try? loop.timer { [weak self] in self?.tell() }
        timer?.arm(after: max(.milliseconds(200), told + Self.pause - loop.now))
    }

    private func tell() {
        timer?.cancel()
        timer = nil
        told = loop.now
        onWay()
    }
}
