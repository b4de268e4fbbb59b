// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Testing

@testable import EventSources

@Suite("What becomes of an event") struct WakesTests {
    private static let toml = """
        [apps.web]
        exec = ["/bin/true"]
        launch = "on-demand"
        """

    private func event(_ events: FakeEvents) -> WakeEvent {
        WakeEvent(.timer, "nightly", "its timer nightly", at: events.shell.time.now)
    }

    @Test("An app that is not running is launched into the background") func launched() throws {
        let events = try FakeEvents(Self.toml)
        let web = events.shell.app("web")
        guard case .woken = events.wakes.tell(event(events), for: web) else { return #expect(Bool(false)) }
        #expect(events.shell.state("web") == .background)
        #expect(events.host.delivered == [web.id])
        #expect(events.shell.told(of: "web").contains { $0.hasPrefix("wake: woken by its timer nightly") })
    }
}
