// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux
import LoginManager

/// The state of the machine's network that matters to transfers. The network is watched only while a transfer waits for
/// a change of this state.
final class TransferNetwork {
    private let loop: EventLoop
    /// Called when the network connection becomes metered, or is no longer metered.
    private let onLink: () -> Void
    /// Called when there is a new route to other machines.
    private let onWay: () -> Void
    private var link: MeteredLink?
    private var routes: RouteWatch?
    private var source: IOSource?
    private var timer: TimerSource?
    /// Stops watching whether the network is metered, some time after that was last needed. The watch is not stopped at
    /// once, because a new watch needs a moment to find out.
    private var linkTimer: TimerSource?
    private static let linger = Duration.seconds(30)
    /// When a new route was last reported.
    private var told = Duration.zero
    /// The shortest time between two reports of a new route. The time grows while new routes appear again and again,
    /// for example because of containers, and no transfer reaches its server.
    private var pause = TransferNetwork.shortestPause

    private static let shortestPause = Duration.seconds(5)
    private static let longestPause = Duration.seconds(300)

    init(_ loop: EventLoop, onLink: @escaping () -> Void, onWay: @escaping () -> Void) {
        self.loop = loop
        self.onLink = onLink
        self.onWay = onWay
    }

    /// Whether the network is metered; nil if this is not known or not watched.
    var isMetered: Bool? { link?.isMetered }

    /// Starts or stops watching whether the network is metered.
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

    /// Starts or stops watching the routes to other machines. If routes cannot be watched, transfers are retried only
    /// after their normal delays.
    func followWays(_ isWanted: Bool) {
        guard isWanted != (source != nil) else { return }
        guard isWanted, let made = try? RouteWatch() else { return endWays() }
        source = try? loop.watch(made.descriptor.raw, .readable) { [weak self] _ in self?.heard() }
        routes = consume made
    }

    /// Called when a transfer has reached its server. Resets the shortest time between two reports of a new route.
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
        // Report the new route after a short delay, because name resolution and addresses are ready a moment later than
        // the route. Until then, do not read further changes of routes, because they add nothing.
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
