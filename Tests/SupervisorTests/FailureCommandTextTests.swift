// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Supervisor

@Suite("What commands of on_failure get, and how many run") struct FailureCommandTextTests {
    @Test("All apps of one user share the places, and one app of another user has a place all the same")
    func places() {
        var places = FailurePlaces()
        for _ in 0..<FailurePlaces.most {
            #expect(places.isFree(for: "a"))
            places.take(for: "a")
        }
        #expect(!places.isFree(for: "a") && places.isFree(for: "b") && places.isFree(for: ""))
        places.take(for: "b")
        #expect(!places.isFree(for: "b"))
        places.giveBack(for: "b")
        #expect(places.isFree(for: "b") && !places.isFree(for: "a"))
        places.giveBack(for: "a")
        #expect(places.isFree(for: "a"))
        // Nothing is given back twice.
        for _ in 0..<100 { places.giveBack(for: "b") }
        places.take(for: "b")
        #expect(!places.isFree(for: "a"))
    }

    /// Apps by their users, which wait for places as those that have failed do.
    private final class Queue {
        private(set) var places = FailurePlaces()
        private var waiting: [String] = []
        /// How often the user of an app was asked for.
        private(set) var questions = 0

        var count: Int { waiting.count }

        func fail(_ user: String) {
            waiting.append(user)
            places.wants(user)
        }

        func end(_ user: String) { places.giveBack(for: user) }

        /// Returns the users of those that begin.
        func beginAll() -> [String] {
            var begun: [String] = []
            while let index = places.first(
                of: waiting,
                user: { user in
                    questions += 1
                    return user
                },
                isReady: { _ in true }
            ) {
                begun.append(waiting.remove(at: index))
                #expect(places.isFree(for: begun[begun.count - 1]))
                places.take(for: begun[begun.count - 1])
            }
            places.settle()
            #expect(!waiting.contains(where: places.isFree), "one waits though it may begin")
            return begun
        }
    }

    @Test("Users with one app each exceed the limit, but twice as many never run")
    func manyUsers() {
        let (queue, most) = (Queue(), FailurePlaces.most)
        let users = (0..<most * 3).map { "u\($0)" }
        users.forEach(queue.fail)
        #expect(queue.beginAll() == Array(users.prefix(most * 2)))
        queue.fail(users[0])
        queue.end(users[1])
        #expect(queue.beginAll() == [users[most * 2]])
        // Nothing but the end of another one lets it begin.
        queue.end(users[0])
        #expect(queue.beginAll() == [users[most * 2 + 1]])
        for user in users[2..<most * 2] { queue.end(user) }
        #expect(queue.beginAll() == Array(users[(most * 2 + 2)...]) + [users[0]])
    }

    @Test("Apps that fail by the thousand are not all gone through for each of them")
    func thousands() {
        let (queue, count) = (Queue(), 500)
        for _ in 0..<count {
            queue.fail("a")
            _ = queue.beginAll()
        }
        #expect(queue.count == count - FailurePlaces.most)
        for _ in 0..<count - FailurePlaces.most {
            queue.end("a")
            #expect(queue.beginAll() == ["a"])
        }
        #expect(queue.count == 0)
        #expect(queue.questions <= count, "\(queue.questions) questions")
    }

    @Test("Texts have no control characters, neither those of ASCII nor those after it")
    func controls() {
        let all = String(String.UnicodeScalarView((0...0x9f).compactMap(Unicode.Scalar.init)))
        let left = FailureCommands.shortened(all + "ä\u{200b}").unicodeScalars.map(\.value)
        #expect(left == [9] + Array(0x20...0x7e) + [0xe4, 0x200b])
        #expect(FailureCommands.shortened(String(repeating: "a", count: 5_000)).count == 1_000)
    }
}
