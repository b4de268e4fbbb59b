// SPDX-License-Identifier: Apache-2.0

import Testing
import TorporAPI
import Varlink

@testable import Web

@Suite("What there is below the dashboard's address, and what its stream says") struct RouteTests {
    @Test("each path leads to one thing, or to nothing")
    func routes() {
        #expect(WebRoute(path: "/") == .asset("index.html"))
        #expect(WebRoute(path: "/app.js") == .asset("app.js"))
        #expect(WebRoute(path: "/api/v1/apps") == .apps)
        #expect(WebRoute(path: "/api/v1/apps/web@1") == .app("web@1"))
        #expect(WebRoute(path: "/api/v1/apps/web/logs") == .logs("web"))
        #expect(WebRoute(path: "/api/v1/apps/web/snapshot") == .snapshot("web"))
        #expect(WebRoute(path: "/api/v1/apps/web/icon") == .icon("web"))
        #expect(WebRoute.snapshot("web").methods == ["GET"])
        #expect(WebRoute(path: "/api/v1/apps/web/unhandled") == .unhandled("web"))
        #expect(WebRoute(path: "/api/v1/apps/web/transfers") == .transfers("web"))
        #expect(WebRoute(path: "/api/v1/transfers") == .transfers(""))
        #expect(WebRoute(path: "/api/v1/apps/web/alerts") == .alerts("web"))
        #expect(WebRoute(path: "/api/v1/alerts") == .alerts("") && WebRoute.alerts("").methods == ["GET"])
        #expect(WebRoute.alerts("web").methods == ["GET", "POST"] && WebRoute.alerts("web").changesApp)
        #expect(WebRoute.transfers("").methods == ["GET"] && WebRoute.transfers("web").methods == ["GET", "POST"])
        #expect(WebRoute(path: "/api/v1/apps/web/permissions") == .permissions("web"))
        #expect(WebRoute(path: "/api/v1/permissions") == nil)
        #expect(WebRoute.permissions("web").methods == ["GET", "POST"] && WebRoute.permissions("web").changesApp)
        #expect(WebRoute.unhandled("web").changesApp && WebRoute.verb("web", .stop).changesApp)
        #expect(!WebRoute.session.changesApp && !WebRoute.apps.changesApp)
        #expect(WebRoute(path: "/api/v1/apps/web/suspend") == .verb("web", .suspend))
        #expect(WebRoute(path: "/api/v1/stream") == .stream)
        #expect(WebRoute(path: "/metrics") == .metrics && WebRoute(path: "/healthz") == .health)
        for path in [
            "/api", "/api/v1", "/api/v2/apps", "/api/v1/apps/web/wait", "/api/v1/apps/web/logs/x", "/x/y", "/.x",
        ] {
            #expect(WebRoute(path: path) == nil, "\(path)")
        }
        #expect(WebRoute.verb("web", .kill).methods == ["POST"] && WebRoute.apps.methods == ["GET"])
    }

    @Test("a message of the stream is lines, then an empty one")
    func framing() {
        let bytes = ServerSentEvent.message("event", ["text": "a\nb"], id: 7)
        #expect(String(decoding: bytes, as: UTF8.self) == "event: event\nid: 7\ndata: {\"text\":\"a\\nb\"}\n\n")
        #expect(String(decoding: ServerSentEvent.message("x", 1), as: UTF8.self) == "event: x\ndata: 1\n\n")
        #expect(ServerSentEvent.heartbeat.first == UInt8(ascii: ":"))
    }

    @Test("what a browser missed is known as long as it is kept")
    func ring() {
        var ring = EventRing(capacity: 4)
        #expect(ring.events(after: 0) == nil && ring.newest == nil)
        let taken = [10, 20, 30, 30, 5].map { ring.take(Int64($0), .int(Int64($0))) }
        #expect(taken == [true, true, true, false, false])
        #expect(ring.events(after: 20)?.map(\.sequence) == [30])
        #expect(ring.events(after: 9)?.count == 3)
        #expect(ring.events(after: 8) == nil)
        for number in 4...20 { _ = ring.take(Int64(number) * 10, .null) }
        #expect(ring.events(after: 30) == nil)
        #expect(ring.events(after: 190)?.map(\.sequence) == [200])
        var empty = EventRing(capacity: 4)
        empty.begin(behind: 50)
        #expect(empty.events(after: 50)?.isEmpty == true && empty.events(after: 49) == nil && empty.newest == 50)
    }

    @Test("a list tells what is different, and not that time has passed")
    func apps() {
        var table = AppTable()
        func app(_ name: String, _ state: String, _ uptime: Double?) -> JSON {
            ["name": .string(name), "state": .string(state), "uptime_s": .optional(uptime)]
        }
        #expect(table.take([app("a", "active", 1), app("b", "active", 1)]).changed.count == 2)
        #expect(table.take([app("a", "active", 2), app("b", "active", 3)]).isEmpty)
        #expect(table.take([app("a", "active", nil), app("b", "suspended", 3)]).changed.count == 2)
        let change = table.take([app("b", "suspended", 4)])
        #expect(change.removed == ["a"] && change.changed.isEmpty && table.all.count == 1)
    }

    @Test("samples are kept for an hour, apps beyond the largest as one, and a time without them is a gap")
    func samples() {
        func sample(_ at: Int64, _ apps: Int = 1) -> Sample {
            let apps = (0..<apps).map { ("app\($0)", Int64(100 - $0)) }
            return Sample(at: at, total: 10, available: 5, swapUsed: 0, some: nil, full: nil, apps: apps)
        }
        var ring = SampleRing(capacity: 100, age: 1000)
        for at in 0..<2000 { ring.take(sample(Int64(at))) }
        #expect(ring.count >= 100 && ring.count <= 164)
        ring.mark(["at": 1999, "app": "web"])
        ring.pause("nobody looks")
        ring.pause("nobody looks")
        #expect(ring.json["gaps"] == [["from": 1999, "to": .null, "why": "nobody looks"]])
        ring.take(sample(2500))
        #expect(ring.json["gaps"] == [["from": 1999, "to": 2500, "why": "nobody looks"]])
        #expect(ring.json["evictions"]?.arrayValue?.count == 1)
        ring.take(sample(9000))
        #expect(ring.json["gaps"] == [] && ring.json["evictions"] == [] && ring.count == 1)
        let many = sample(1, 40).json["apps"]?.objectValue
        #expect(many?.members.count == Sample.mostApps + 1)
        #expect(many?[""]?.intValue == (16..<40).reduce(0) { $0 + Int64(100 - $1) })
    }
}
