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
    /// The link is let go of when it was not wanted for so long: it takes a moment until it is known again.
    private var linkTimer: TimerSource?
    private static let linger = Duration.seconds(30)
    /// When it was told last that there is a way.
    private var told = Duration.zero
    /// So long it is not told again: longer and longer where routes come and go all the time, as with containers, and none of
    /// them is the one that is waited for.
    private var pause = TransferNetwork.shortestPause

    private static let shortestPause = Duration.seconds(5)
    private static let longestPause = Duration.seconds(300)

    init(_ loop: EventLoop, onLink: @escaping () -> Void, onWay: @escaping () -> Void) {
        self.loop = loop
        self.onLink = onLink
        self.onWay = onWay
    }

    /// Whether the link is metered; nil as long as that is not known, or not followed.
    var isMetered: Bool? { link?.isMetered }

    /// Begins, or ends, to follow whether the link is metered.
    func followLink(_ isWanted: Bool) {
        if isWanted {
            linkTimer?.cancel()
            linkTimer = nil
            guard link == nil else { return }
            link = MeteredLink(loop)
            link?.onChange = onLink
        } else if link != nil, linkTimer == nil {
            linkTimer = try? loop.timer { [weak self] in self?.letGoOfLink() }
            linkTimer?.arm(after: Self.linger)
        }
    }

    private func letGoOfLink() {
        linkTimer?.cancel()
        linkTimer = nil
        link = nil
    }

    /// Begins, or ends, to follow the ways to other machines. Where they cannot be followed nothing is lost but time.
    func followWays(_ isWanted: Bool) {
        guard isWanted != (source != nil) else { return }
        guard isWanted, let made = try? RouteWatch() else { return endWays() }
        source = try? loop.watch(made.descriptor.raw, .readable) { [weak self] _ in self?.heard() }
        routes = consume made
    }

    /// A server was reached: what is news from now on is news.
    func wayWasFound() { pause = Self.shortestPause }

    private func endWays() {
        source?.cancel()
        source = nil
        routes = nil
        timer?.cancel()
        timer = nil
    }

    private func heard() {
        do throws(Errno) {
            guard try routes?.hasNews() ?? false else { return }
        } catch {
            return endWays()
        }
        // More of them say nothing more until this one is told. Names can be resolved, and addresses are in use, a moment after
        // the route is there.
        source?.setEvents([])
        timer = try? loop.timer { [weak self] in self?.tell() }
        timer?.arm(after: max(.milliseconds(200), told + pause - loop.now))
        if told + pause * 2 < loop.now { pause = Self.shortestPause }
    }

    private func tell() {
        timer?.cancel()
        timer = nil
        do throws(Errno) {
            _ = try routes?.hasNews()
        } catch {
            return endWays()
        }
        source?.setEvents(.readable)
        told = loop.now
        pause = min(pause * 2, Self.longestPause)
        onWay()
    }
}
