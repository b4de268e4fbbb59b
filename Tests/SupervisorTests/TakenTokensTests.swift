import Testing
import TorporAPI

@testable import Supervisor

@Suite("Tokens that an app has taken") struct TakenTokensTests {
    @Test("the last four are known, and which of them are uncertain")
    func standing() {
        let tokens = (0..<5).map { _ in RequestToken.random() }
        var taken = TakenTokens()
        #expect(taken.newest == 0 && taken.standing(of: nil) == .unknown)
        for token in tokens { taken.take(token, isUncertain: token == tokens[4]) }
        #expect(tokens.map { taken.standing(of: $0) } == [.unknown, .taken, .taken, .taken, .uncertain])
        taken.take(tokens[4])
        #expect(taken.standing(of: tokens[4]) == .taken && taken.newest == tokens[4].value)
        #expect(taken.standing(of: tokens[1]) == .taken)
        taken.take(nil)
        #expect(taken.newest == tokens[4].value)
    }

    @Test("what was refused is forgotten, and those before it are not")
    func givenBack() {
        let (first, second) = (RequestToken.random(), RequestToken.random())
        var taken = TakenTokens()
        taken.take(first)
        taken.take(second, isUncertain: true)
        taken.giveBack(second)
        taken.giveBack(nil)
        #expect(taken.standing(of: second) == .unknown && taken.standing(of: first) == .taken)
    }
}
