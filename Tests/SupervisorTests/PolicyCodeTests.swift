// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Policies
import Testing

@testable import Supervisor

@Suite("What policies are told in numbers") struct PolicyCodeTests {
    @Test("reasons, states and launches have the numbers of the header")
    func codes() {
        for reason in TerminationReason.allCases {
            #expect(PolicyWords.reason(Optional(reason).policyCode) == reason.rawValue)
        }
        for state in AppState.allCases { #expect(PolicyWords.states[Int(state.policyCode)] == state.rawValue) }
        for goal in Goal.allCases {
            #expect(PolicyWords.states[Int(goal.policyCode)] == goal.rawValue)
            #expect(Goal(policyCode: goal.policyCode) == goal)
        }
        for launch in LaunchReason.allCases {
            #expect(PolicyWords.launches[Int(launch.policyCode) - 1] == launch.rawValue)
        }
        #expect(Goal(policyCode: 5) == nil)
    }
}
