// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Policies
import PolicyLibraries
import Testing
import TorporPolicyABI

/// Policies that do harm to themselves: each ends as a failure with a sentence, and leaves no process behind.
struct HostileTests {
    private func hostile(_ harm: String, at: String = "decide") throws -> HostProcess {
        try Hosts.start(
            try Libraries.path("hostile.c"),
            options: [
                PolicyOption(key: "does", value: .string(harm)), PolicyOption(key: "at", value: .string(at)),
            ]
        )
    }

    /// Asks once, expects a failure, and that it stays that one.
    private func ask(_ harm: String, deadline: Duration = Hosts.patience) throws -> PolicyFailure {
        let host = try hostile(harm)
        let pid = host.pid
        let failure = try Hosts.failure(host, deadline: deadline)
        #expect(Hosts.isGone(pid))
        #expect(try Hosts.failure(host) == failure)
        return failure
    }

    @Test func aSegmentationFaultEndsItsProcess() throws {
        let failure = try ask("segfault")
        #expect(failure == .ended(.signalled(Signal.number(named: "SEGV")!), lastLine: ""))
        #expect("\(failure)" == "the policy's process was ended by SIGSEGV")
    }

    @Test func anAbortIsToldWithItsLastLine() throws {
        #expect(
            "\(try ask("abort"))"
                == "the policy's process was ended by SIGABRT; its last output: it cannot go on"
        )
    }

    @Test func anExitIsAFailureToo() throws {
        #expect("\(try ask("exit"))" == "the policy's process exited with status 0")
    }

    @Test(arguments: ["loop", "sleep", "stop"]) func whoDoesNotAnswerInTimeIsEnded(harm: String) throws {
        let failure = try ask(harm, deadline: .milliseconds(50))
        #expect(failure == .late(.milliseconds(50)))
        #expect("\(failure)" == "the policy gave no answer within 50 ms: give it a longer deadline, or fix it")
    }

    @Test func memoryHasItsBound() throws {
        let failure = try ask("allocate")
        #expect("\(failure)" == "the policy's process was ended by SIGABRT; its last output: no memory")
    }

    @Test func whoClosesItsDescriptorsIsNotHeardAnyMore() throws {
        let failure = try ask("close")
        #expect(failure == .ended(.exited(2), lastLine: ""))
    }

    @Test func garbageIsNoAnswer() throws {
        let failure = try ask("garbage")
        #expect("\(failure)".hasPrefix("the policy's process broke the protocol: an answer to question "))
    }

    @Test func aFloodOfAdviceIsAFailure() throws {
        let failure = try ask("flood")
        #expect(failure == .flooded(limit: 4096))
        #expect("\(failure)" == "the policy gave more than 4096 pieces of advice to one question")
        // As much as it may give is taken.
        let host = try Hosts.start(
            try Libraries.path("hostile.c"),
            options: [PolicyOption(key: "does", value: .string("flood"))]
        ) { $0.adviceLimit = 10000 }
        let advice = try host.ask([Hosts.event(TORPOR_EVENT_TIMER)], deadline: Hosts.patience).advice
        #expect(advice.count == 10000 && advice.last?.app == 9999 && advice.last?.reason == "because it wants to")
    }

    @Test func chatterOnStandardErrorStopsNobody() throws {
        let host = try hostile("chatter")
        #expect(try host.ask([Hosts.event(TORPOR_EVENT_TIMER)], deadline: Hosts.patience) == PolicyAnswer())
        #expect(try host.ask([Hosts.event(TORPOR_EVENT_TIMER)], deadline: Hosts.patience) == PolicyAnswer())
    }

    @Test(arguments: ["wild", "reason"]) func wildPointersHitTheirOwnProcess(harm: String) throws {
        #expect("\(try ask(harm))" == "the policy's process was ended by SIGSEGV")
    }

    #if arch(x86_64)
    @Test func systemCallsOfAnotherInterfaceEndIt() throws {
        #expect("\(try ask("x32"))" == "the policy's process was ended by SIGSYS")
    }
    #endif

    @Test func theViewCannotBeWrittenTo() throws {
        let view = try Hosts.view()
        let host = try Hosts.start(
            try Libraries.path("hostile.c"),
            options: [PolicyOption(key: "does", value: .string("view"))],
            view: view
        )
        let failure = try Hosts.failure(host)
        #expect(
            "\(failure)"
                == "the policy's process was ended by SIGSEGV; its last output: mprotect: Permission denied"
        )
        #expect(view[0].priority == 0)
    }

    @Test func harmWhileItIsMadeIsToldTheSame() throws {
        func failure(_ harm: String) throws -> String {
            "\(try #require(throws: PolicyFailure.self) { _ = try hostile(harm, at: "create") })"
        }
        #expect(try failure("segfault") == "the policy's process was ended by SIGSEGV")
        #expect(try failure("exit") == "the policy's process exited with status 0")
        #expect(try failure("garbage").hasPrefix("the policy's process broke the protocol: "))
    }

    @Test func harmWhileItsLibraryIsOpenedIsToldTheSame() throws {
        func failure(_ harm: Int) throws -> String {
            "\(try Hosts.failure(try Libraries.path("constructor.c", ["-DHARM=\(harm)"])))"
        }
        #expect(try failure(1) == "the policy's process was ended by SIGSEGV")
        #expect(try failure(2) == "the policy's process exited with status 0")
        #expect(try failure(4).hasPrefix("the policy's process broke the protocol: "))
        let endless = try #require(throws: PolicyFailure.self) {
            _ = try Hosts.start(try Libraries.path("constructor.c", ["-DHARM=3"])) {
                $0.loadDeadline = .milliseconds(100)
            }
        }
        #expect(endless == .late(.milliseconds(100)))
    }

    @Test func anExceptionThatNobodyCatchesEndsItsProcess() throws {
        let host = try Hosts.start(try Libraries.path("throws.cpp"))
        // One that is caught does not.
        #expect(try host.ask([Hosts.event(TORPOR_EVENT_STATE)], deadline: Hosts.patience).decided == 1)
        #expect(
            "\(try Hosts.failure(host))"
                == "the policy's process was ended by SIGABRT; its last output: what():  nobody catches this"
        )
    }

    @Test func aTrapInSwiftEndsItsProcess() throws {
        let host = try Hosts.start(try Libraries.path("traps.swift"))
        let answer = try host.ask([Hosts.event(TORPOR_EVENT_STATE)], deadline: Hosts.patience)
        #expect(answer == PolicyAnswer(decided: 1, advice: [PolicyAdvice(kind: 1, app: 0, reason: "NO TRAP YET")]))
        guard case .ended(.signalled(let number), _) = try Hosts.failure(host) else {
            Issue.record("it was not ended by a signal")
            return
        }
        #expect([Signal.number(named: "ILL"), Signal.number(named: "TRAP")].contains(number))
    }
}
