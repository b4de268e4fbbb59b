// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux
import Location
import Testing

@Suite("Where the machine is") struct LocationTests {
    static let gate = Position(latitude: 52.516275, longitude: 13.377704)

    @Test("Distances are those of the sphere")
    func distance() {
        // Brandenburg Gate to the television tower, and to Paris.
        let tower = Position(latitude: 52.520815, longitude: 13.409419)
        #expect(abs(Self.gate.distance(to: tower) - 2_205) < 15)
        let paris = Position(latitude: 48.856614, longitude: 2.352222)
        #expect(abs(Self.gate.distance(to: paris) - 876_000) < 4_000)
        #expect(Self.gate.distance(to: Self.gate) == 0)
        // Over the date line, and to the other side of the Earth.
        let east = Position(latitude: 0, longitude: 179.999)
        let west = Position(latitude: 0, longitude: -179.999)
        #expect(abs(east.distance(to: west) - 222.4) < 1)
        let other = Position(latitude: -52.516275, longitude: -166.622296)
        #expect(abs(Self.gate.distance(to: other) - 20_015_000) < 2_000)
    }

    /// So many metres north of the gate.
    private func north(_ metres: Double, accuracy: Double = 0) -> Position {
        Position(latitude: 52.516275 + metres / 111_195, longitude: 13.377704, accuracy: accuracy)
    }

    @Test("A region is entered and left when positions agree on it for long enough")
    func region() {
        let region = Region(centre: Self.gate, radius: 100, settle: .seconds(20))
        var tracker = RegionTracker()
        #expect(tracker.take(north(10), in: region, now: .seconds(0)) == nil)
        #expect(tracker.isInside == true, "where it is at first is no crossing")
        #expect(tracker.take(north(150), in: region, now: .seconds(10)) == nil)
        #expect(tracker.take(north(90), in: region, now: .seconds(20)) == nil, "it was back")
        #expect(tracker.take(north(150), in: region, now: .seconds(30)) == nil)
        #expect(tracker.take(north(160), in: region, now: .seconds(49)) == nil)
        #expect(tracker.take(north(160), in: region, now: .seconds(50)) == false)
        #expect(tracker.take(north(160), in: region, now: .seconds(90)) == nil, "told once")
        #expect(tracker.take(north(20), in: region, now: .seconds(100)) == nil)
        #expect(tracker.take(north(20), in: region, now: .seconds(120)) == true)
    }

    @Test("What could be inaccuracy alone is no crossing")
    func accuracy() {
        let region = Region(centre: Self.gate, radius: 100, settle: .zero)
        var tracker = RegionTracker()
        _ = tracker.take(north(0), in: region, now: .zero)
        #expect(tracker.take(north(120, accuracy: 30), in: region, now: .seconds(1)) == nil)
        #expect(tracker.take(north(140, accuracy: 30), in: region, now: .seconds(2)) == false)
        #expect(tracker.take(north(80, accuracy: 30), in: region, now: .seconds(3)) == nil)
        #expect(tracker.take(north(60, accuracy: 30), in: region, now: .seconds(4)) == true)
        // A poor receiver would never leave anything otherwise.
        #expect(tracker.take(north(160, accuracy: 900), in: region, now: .seconds(5)) == false)
    }

    @Test("A tracker goes on from what was known before")
    func known() {
        let region = Region(centre: Self.gate, radius: 100, settle: .zero)
        var tracker = RegionTracker(isInside: true)
        #expect(tracker.take(north(300), in: region, now: .zero) == false)
    }

    @Test("A change is significant when it is far enough, certain, and not too soon after the last")
    func significant() {
        var tracker = ChangeTracker()
        func take(_ metres: Double, at seconds: Int, accuracy: Double = 0) -> Double? {
            tracker.take(
                north(metres, accuracy: accuracy),
                distance: 500,
                interval: .seconds(300),
                now: .seconds(seconds)
            )
        }
        #expect(take(0, at: 0) == nil, "the first one only says where it is")
        #expect(take(499, at: 10) == nil)
        #expect(take(700, at: 20, accuracy: 800) == nil)
        #expect(abs((take(700, at: 30) ?? 0) - 700) < 5)
        #expect(take(1_500, at: 329) == nil)
        #expect(abs((take(1_500, at: 330) ?? 0) - 800) < 5)
    }

    @Test("Who wants all positions gets all of them, the first too")
    func continuous() {
        var tracker = ChangeTracker()
        for second in 0..<3 {
            let moved = tracker.take(north(0, accuracy: 20), distance: 0, tellsFirst: true, now: .seconds(second))
            #expect(moved == 0)
        }
    }

    @Test("Reports of gpsd are read, and what is no report is not")
    func reports() {
        func report(_ text: String) -> GPSReport? { GPSReport(line: Array(text.utf8)) }
        #expect(report(#"{"class":"VERSION","release":"3.22","rev":"3.22"}"# + "\r") == .version(release: "3.22"))
        #expect(report(#"{"class":"DEVICES","devices":[{"class":"DEVICE","path":"/dev/ttyS0"}]}"#) == .devices(1))
        #expect(report(#"{"class":"SKY","device":"/dev/pts/1"}"#) == .other)
        #expect(report(#"{"class":"TPV","mode":1,"lat":1,"lon":2}"#) == .noFix)
        #expect(report(#"{"class":"TPV","mode":3,"lat":91,"lon":2}"#) == .noFix)
        #expect(report(#"{"class":"ERROR","message":"no"}"#) == .error("no"))
        #expect(report("SSH-2.0-OpenSSH_9.2") == nil && report(#"{"no":"class"}"#) == nil)
        let text =
            #"{"class":"TPV","mode":3,"time":"2024-06-01T12:00:52.000Z","lat":52.53,"lon":13.405,"altHAE":70.0,"#
            + #""track":90.0,"speed":0.514,"eph":17.1}"#
        var expected = Position(latitude: 52.53, longitude: 13.405, accuracy: 17.1)
        expected.altitude = 70
        expected.course = 90
        expected.speed = 0.514
        expected.time = "2024-06-01T12:00:52.000Z"
        #expect(report(text) == .fix(expected))
        let older = report(#"{"class":"TPV","mode":2,"lat":1,"lon":2,"epx":3,"epy":4}"#)
        #expect(older == .fix(Position(latitude: 1, longitude: 2, accuracy: 5)))
    }

    static func turn(_ loop: EventLoop, until isSo: () throws -> Bool) throws {
        let end = Clock.monotonic() + .seconds(60)
        while try !isSo() {
            try #require(Clock.monotonic() < end)
            _ = try loop.runOnce(timeout: .milliseconds(50))
        }
    }

    @Test("What answers on this machine is not read where its user is not trusted, and is tried again")
    func distrust() throws {
        let loop = try EventLoop()
        let listener = try Sockets.listenTCP(address: "127.0.0.1", port: 0)
        let own = Users.effectiveUID
        let port = try Sockets.port(listener.raw)
        let client = GPSClient(loop, address: "127.0.0.1", port: port, trusted: [own + 1])
        var fixes = 0
        var reasons: [String] = []
        client.onFix = { _ in fixes += 1 }
        client.onDistrust = { reasons.append($0) }
        let lines = #"{"class":"VERSION","release":"9"}"# + "\n" + #"{"class":"TPV","mode":2,"lat":1,"lon":2}"# + "\n"
        for _ in 0..<2 {
            var peer: Descriptor?
            try Self.turn(loop) {
                peer = try Sockets.accept(listener.raw)
                return peer != nil
            }
            let accepted = try #require(peer)
            _ = try Descriptor.write(accepted.raw, Array(lines.utf8))
            // It is left.
            try Self.turn(loop) {
                do throws(Errno) {
                    var isLeft = false
                    while let bytes = try Descriptor.read(accepted.raw, maximum: 4096), !isLeft {
                        isLeft = bytes.isEmpty
                    }
                    return isLeft
                } catch {
                    return true
                }
            }
        }
        #expect(fixes == 0 && client.release == nil && client.lastFix == nil)
        #expect(
            reasons.count == 1 && reasons.first?.contains("user \(own) runs the server there") ?? false,
            "\(reasons)"
        )
        #expect(client.trouble == reasons.first)
    }

    @Test("What answers and is no gpsd is left, and tried again")
    func nonsense() throws {
        let loop = try EventLoop()
        let listener = try Sockets.listenTCP(address: "127.0.0.1", port: 0)
        let port = try Sockets.port(listener.raw)
        let client = GPSClient(loop, address: "127.0.0.1", port: port, trusted: [Users.effectiveUID])
        var fixes: [Position] = []
        client.onFix = { fixes.append($0) }
        func turn(until isSo: () throws -> Bool) throws { try Self.turn(loop, until: isSo) }
        var peer: Descriptor?
        try turn {
            peer = try Sockets.accept(listener.raw)
            return peer != nil
        }
        let flood = [UInt8](repeating: UInt8(ascii: "x"), count: 80 << 10)
        var sent = 0
        try turn {
            if let peer, sent < flood.count {
                do { sent += try Descriptor.write(peer.raw, Array(flood[sent...])) ?? 0 } catch { sent = flood.count }
            }
            return client.trouble == "the server at this address is not gpsd"
        }
        // It comes again after a second, and this time somebody speaks as it should.
        try turn {
            peer = try Sockets.accept(listener.raw)
            return peer != nil
        }
        let lines =
            #"{"class":"VERSION","release":"9"}"# + "\r\n" + #"{"class":"TPV","mode":2,"lat":1,"lon":2}"# + "\r\n"
            + #"{"class":"TPV","mode":2,"lat":3,"lon":4}"# + "\r\n{\"class\":"
        _ = try Descriptor.write(try #require(peer).raw, Array(lines.utf8))
        try turn { !fixes.isEmpty }
        #expect(fixes == [Position(latitude: 3, longitude: 4)], "the last one of several")
        #expect(client.release == "9" && client.trouble == nil && client.lastFix != nil)
        peer = nil
        try turn { client.release == nil }
        #expect(client.trouble != nil)
    }
}
