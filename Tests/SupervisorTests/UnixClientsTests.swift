// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Linux
@testable import Supervisor

extension UnixClients {
    fileprivate mutating func take(_ sockets: [UnixSocket], _ time: Duration) {
        var rest = sockets[...]
        let isTaken = take(&rest, time, until: nil)
        #expect(isTaken && rest.isEmpty)
    }
}

@Suite("Whose the connections at Unix sockets are") struct UnixClientsTests {
    static func address(_ number: UInt64 = 1) -> UnixSocket.Address { UnixSocket.Address(place: number, file: 1) }

    static func listener(_ inode: UInt32, _ address: UInt64 = 1, hasWaiting: Bool = false) -> UnixSocket {
        UnixSocket(inode: inode, address: self.address(address), listens: true, hasWaiting: hasWaiting, peer: 0)
    }

    static func accepted(_ inode: UInt32, peer: UInt32, _ address: UInt64 = 1) -> UnixSocket {
        UnixSocket(inode: inode, address: self.address(address), listens: false, hasWaiting: false, peer: peer)
    }

    /// Counts for an app with these sockets.
    static func count(
        _ clients: inout UnixClients,
        _ sockets: [UInt32],
        undecidedSince: Duration? = nil,
        saving: ClosedRange<Duration>? = nil
    ) -> [Int64?] {
        let own = Set(sockets)
        let found = clients.count(
            sockets,
            isOwn: { own.contains($0) },
            undecidedSince: undecidedSince,
            saving: saving
        )
        return [Int64(found.open), found.lastUse?.components.seconds]
    }

    @Test("A client counts while it is connected, and its coming and going is use")
    func client() {
        var clients = UnixClients()
        clients.take([Self.listener(1)], .seconds(1))
        #expect(Self.count(&clients, [1]) == [0, nil])
        clients.take([Self.listener(1), Self.accepted(2, peer: 9)], .seconds(2))
        #expect(Self.count(&clients, [1, 2]) == [1, 2])
        clients.take([Self.listener(1), Self.accepted(2, peer: 9)], .seconds(3))
        #expect(Self.count(&clients, [1, 2]) == [1, 2])
        clients.take([Self.listener(1), Self.accepted(2, peer: 0)], .seconds(4))
        #expect(Self.count(&clients, [1, 2]) == [0, 2])
        clients.take([Self.listener(1)], .seconds(5))
        #expect(Self.count(&clients, [1]) == [0, 5])
        clients.take([Self.listener(1, hasWaiting: true)], .seconds(6))
        #expect(Self.count(&clients, [1]) == [0, 6])
    }

    @Test("Connections of the app's own processes are no use, neither when they come nor when they go")
    func own() {
        var clients = UnixClients()
        clients.take([Self.listener(1)], .seconds(1))
        clients.take([Self.listener(1), Self.accepted(2, peer: 3)], .seconds(2))
        #expect(Self.count(&clients, [1, 2, 3]) == [0, nil])
        // Both ends are closed, and another search has replaced what is known of the app's sockets.
        clients.take([Self.listener(1)], .seconds(3))
        #expect(Self.count(&clients, [1]) == [0, nil])
        // The other end alone is closed first.
        clients.take([Self.listener(1), Self.accepted(4, peer: 5)], .seconds(4))
        #expect(Self.count(&clients, [1, 4, 5]) == [0, nil])
        clients.take([Self.listener(1), Self.accepted(4, peer: 0)], .seconds(5))
        clients.take([Self.listener(1)], .seconds(6))
        #expect(Self.count(&clients, [1]) == [0, nil])
    }

    @Test("A new connection is a reason to search the app that listens, and counts only after the search")
    func undecided() {
        var clients = UnixClients()
        clients.take([Self.listener(1), Self.listener(11, 2)], .seconds(1))
        #expect(!clients.hasNewConnections(at: [1], since: .zero))
        let sockets = [Self.listener(1), Self.listener(11, 2), Self.accepted(2, peer: 3), Self.accepted(4, peer: 9)]
        clients.take(sockets, .seconds(3))
        #expect(clients.hasNewConnections(at: [1], since: .seconds(2)))
        #expect(!clients.hasNewConnections(at: [11], since: .seconds(2)), "it is another app's")
        #expect(Self.count(&clients, [1], undecidedSince: .seconds(2)) == [0, nil])
        #expect(Self.count(&clients, [1, 2, 3, 4]) == [1, 3])
        clients.take(sockets, .seconds(5))
        #expect(!clients.hasNewConnections(at: [1], since: .seconds(4)))
        #expect(Self.count(&clients, [1, 2, 3, 4], undecidedSince: .seconds(4)) == [1, 3])
    }

    @Test("A connection that was first seen while the app saved its state is no use when it ends after that")
    func saving() {
        var clients = UnixClients()
        let saving = Duration.seconds(2)...Duration.seconds(4)
        clients.take([Self.listener(1)], .seconds(1))
        clients.take([Self.listener(1), Self.accepted(2, peer: 9)], .seconds(3))
        #expect(Self.count(&clients, [1, 2], saving: saving) == [1, nil])
        clients.take([Self.listener(1)], .seconds(6))
        #expect(Self.count(&clients, [1], saving: saving) == [0, nil])
        // A client that comes later is one.
        clients.take([Self.listener(1), Self.accepted(4, peer: 9)], .seconds(7))
        #expect(Self.count(&clients, [1, 4], saving: saving) == [1, 7])
    }

    /// Numbers that count how often one of them is read.
    private struct CountedNumbers: Sequence {
        final class Reads { var count = 0 }
        let numbers: ClosedRange<UInt32>
        let reads = Reads()

        func makeIterator() -> AnyIterator<UInt32> {
            var rest = numbers.makeIterator()
            return AnyIterator {
                reads.count += 1
                return rest.next()
            }
        }
    }

    @Test("An app with thousands of listening sockets is counted in one pass")
    func many() {
        let most: UInt32 = 5_000
        var clients = UnixClients()
        let sockets = (1...most).flatMap { number in
            let place = UInt64(number)
            return [Self.listener(number, place), Self.accepted(10_000 + number, peer: 20_000 + number, place)]
        }
        clients.take(sockets, .seconds(1))
        let numbers = CountedNumbers(numbers: 1...most)
        var questions = 0
        let found = clients.count(numbers) { _ in
            questions += 1
            return false
        }
        #expect(found.open == Int(most))
        #expect(numbers.reads.count == Int(most) + 1, "the sockets are read once, not for each of them")
        #expect(questions == Int(most), "each client is looked up once")
        // What is known of a client is not asked again.
        #expect(clients.count(numbers) { _ in false }.open == Int(most))
        #expect(questions == Int(most))
    }

    /// The processor time of this thread for connections that come and go, and for counting them.
    private static func cost(of count: UInt32, atOneAddress: Bool) -> Duration {
        let numbers = Array(1...count)
        func address(_ number: UInt32) -> UInt64 { atOneAddress ? 1 : UInt64(number) }
        let listeners = atOneAddress ? [listener(1)] : numbers.map { listener($0, address($0)) }
        let connections = numbers.map { accepted(count + $0, peer: 2 * count + $0, address($0)) }
        let own = Set(numbers)
        var clients = UnixClients()
        let begin = Clock.threadProcessorTime()
        clients.take(listeners + connections, .seconds(1))
        let first = clients.count(numbers) { own.contains($0) }
        clients.take(listeners + connections.dropLast(Int(count) / 2), .seconds(2))
        let second = clients.count(numbers) { own.contains($0) }
        let cost = Clock.threadProcessorTime() - begin
        #expect(first.open == Int(count) && second.open == Int(count) - Int(count) / 2 && second.lastUse == .seconds(2))
        return cost
    }

    @Test("What a look costs grows as the number of sockets does, wherever they are", arguments: [true, false])
    func growth(atOneAddress: Bool) {
        // Eight times as many cost about eight times as much; if each cost as much as there are, 64 times as much.
        func grows() -> Bool {
            Self.cost(of: 32_000, atOneAddress: atOneAddress) > Self.cost(of: 4_000, atOneAddress: atOneAddress) * 24
        }
        // Others on the machine may take its caches away.
        #expect(!(grows() && grows() && grows()))
    }

    @Test("Listeners with very many connections are compared in steps too")
    func bigListeners() {
        let count = UInt32(UnixClients.portion)
        let listeners = (1...4).map { Self.listener($0, UInt64($0)) }
        let connections = (0..<4 * count).map { Self.accepted(10 + $0, peer: 10_000 + $0, UInt64($0 / count) + 1) }
        var clients = UnixClients()
        clients.take(listeners + connections, .seconds(1))
        var rest = listeners[...]
        clients.begin()
        var steps = 1
        while !clients.take(&rest, .seconds(2), until: .zero) { steps += 1 }
        // One for the sockets, and one for each listener.
        #expect(steps >= 5, "\(steps)")
        #expect(Self.count(&clients, [1, 2, 3, 4]) == [0, 1], "nothing was known of the clients")
    }

    @Test("A great many sockets are taken in steps, and count when all are there")
    func steps() {
        let most: UInt32 = 5_000
        let listeners = (1...most).map { Self.listener($0, UInt64($0)) }
        let connections = (1...most).map { Self.accepted(10_000 + $0, peer: 20_000 + $0, UInt64($0)) }
        var clients = UnixClients()
        func step(_ sockets: [UnixSocket], _ time: Duration) -> Int {
            var rest = sockets[...]
            var steps = 1
            clients.begin()
            // Each step is late, so that each does the least that it may.
            while !clients.take(&rest, time, until: .zero) { steps += 1 }
            return steps
        }
        // Connections may be read before their listening sockets.
        #expect(step(connections + listeners, .seconds(1)) >= 2 * Int(most) / UnixClients.portion)
        #expect(Self.count(&clients, Array(1...most)) == [Int64(most), 1])
        // A round that is abandoned leaves all as it was.
        clients.begin()
        var rest = listeners[...]
        let isTaken = clients.take(&rest, .seconds(2), until: .zero)
        #expect(!isTaken && rest.count == Int(most) - UnixClients.portion)
        #expect(Self.count(&clients, Array(1...most)) == [Int64(most), 1])
        // The connections of the last address are over. All listeners are compared, in steps too.
        #expect(step(listeners + connections.dropLast(), .seconds(3)) >= 3 * Int(most) / UnixClients.portion)
        #expect(Self.count(&clients, Array(1...most)) == [Int64(most) - 1, 3])
        #expect(Self.count(&clients, [1]) == [1, 1] && Self.count(&clients, [most]) == [0, 3])
    }
}
