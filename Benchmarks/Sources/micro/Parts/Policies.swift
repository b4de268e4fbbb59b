// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import Policies
import PolicyHost
import TorporPolicyABI

extension Part {
    static let policyQuestion = Part(
        name: "policy-question",
        what: "a policy in this process is asked about an event, a thousand apps in view, and gives a piece of advice"
    ) { try asking("again", pieces: 1) }

    static let policyQuestionSilent = Part(
        name: "policy-question-silent",
        what: "the same, and it advises nothing"
    ) { try asking("nothing", pieces: 0) }

    static let policyView = Part(
        name: "policy-view",
        what: "one of a thousand apps' records in the policies' view is written"
    ) {
        let view = try thousandApps()
        return { count in
            for number in 0..<count {
                let place = number % Fleet.size
                let now = Int64(number)
                view.system.now = now
                view[place].state = TORPOR_STATE_SUSPENDED.rawValue
                view[place].edge = TORPOR_EDGE_NONE.rawValue
                view[place].goal = TORPOR_STATE_SUSPENDED.rawValue
                view[place].state_since.4 = now
                view[place].last_use = now
                view[place].grant_ends = now
                view[place].tasks = 0
            }
            guard view[count % Fleet.size].size > 0, view.system.now == Int64(count - 1) else {
                throw WentWrong("the view does not hold what was written")
            }
        }
    }

    static let policyChain = Part(
        name: "policy-chain",
        what: "an event is posted, a policy in this process is asked on the loop, and its advice is handed on"
    ) {
        let loop = try EventLoop()
        let view = try thousandApps()
        let taker = AdviceTaker()
        let chain = PolicyChain(loop: loop, view: view, hosts: NoHosts())
        chain.delegate = taker
        var settings = PolicySettings(name: "bench", path: try policyLibrary())
        settings.isIsolated = false
        settings.options = [PolicyOption(key: "says", value: .string("again"))]
        chain.configure([settings])
        for _ in 0..<10 { try loop.runOnce(timeout: .zero) }
        guard chain.wants(TORPOR_EVENT_STATE) else { throw WentWrong("the policy is not loaded: \(taker.said)") }
        return { count in
            let before = taker.taken
            for number in 0..<count {
                chain.post(suspended(number % Fleet.size))
                while taker.taken == before + number { try loop.runOnce(timeout: .zero) }
            }
            guard taker.taken == before + count else {
                throw WentWrong("\(taker.taken - before) of \(count) pieces of advice came")
            }
        }
    }

    // MARK: What they share

    private static func asking(_ says: String, pieces: Int) throws -> (_ count: Int) throws -> Void {
        let view = try thousandApps()
        let option = PolicyOption(key: "says", value: .string(says))
        let library = try PolicyLibrary(path: try policyLibrary(), options: [option])
        return { count in
            var given = 0
            for number in 0..<count {
                var event = suspended(number % Fleet.size)
                given += try withUnsafePointer(to: &event) { event throws(PolicyFailure) in
                    try library.ask(UnsafeBufferPointer(start: event, count: 1), of: view, limit: 64).advice.count
                }
            }
            guard given == count * pieces else { throw WentWrong("\(count) questions gave \(given) pieces of advice") }
        }
    }

    private static func suspended(_ place: Int) -> torpor_policy_event {
        var event = PolicyChain.event(TORPOR_EVENT_STATE, at: .seconds(1))
        event.app = UInt32(place)
        event.from = TORPOR_STATE_BACKGROUND.rawValue
        event.to = TORPOR_STATE_SUSPENDED.rawValue
        return event
    }

    private static func thousandApps() throws -> PolicyView {
        let view = try PolicyView()
        for place in 0..<Fleet.size {
            guard view.put(place, name: "worker@\(place)", tags: ["office"]) else { throw WentWrong("no room") }
        }
        return view
    }

    /// The policy in C, newly compiled.
    private static func policyLibrary() throws -> String {
        // Benchmarks/Sources/micro/Parts/Policies.swift
        var folder = URL(fileURLWithPath: #filePath)
        for _ in 0..<4 { folder.deleteLastPathComponent() }
        let headers = folder.deletingLastPathComponent().appendingPathComponent("Sources/TorporPolicyABI/include").path
        let library = Scratch.path("libpolicy.so")
        let source = folder.appendingPathComponent("Programs/policy.c").path
        // With popen: Foundation's Process does not work under valgrind.
        let compiler = popen("exec cc -O2 -shared -fPIC -I '\(headers)' -o '\(library)' '\(source)'", "r")
        guard let compiler, pclose(compiler) == 0 else { throw WentWrong("\(source) cannot be compiled") }
        return library
    }
}

/// Accepts all advice.
private final class AdviceTaker: PolicyChainDelegate {
    var taken = 0
    var said = ""

    func policiesWillBeAsked(_ events: [torpor_policy_event], needs: UInt64, _ ready: @escaping () -> Void) { ready() }
    func take(_ decision: PolicyDecision) -> CounselOutcome {
        taken += 1
        return .idle
    }
    func policiesAnswered(_ events: [torpor_policy_event], _ decisions: [(PolicyDecision, CounselOutcome)]) {}
    func policy(_ slot: PolicySlot, changed sentence: String, isTrouble: Bool) { said = sentence }
    func policy(_ slot: PolicySlot, wrote line: String) { said = line }
    func policiesChanged() {}
}

private final class NoHosts: PolicyHostLauncher {
    var hostUser: (user: UInt32, group: UInt32)? { nil }
    func launch(
        _ plan: HostPlan,
        started: @escaping (Result<StartedHost, PolicyFailure>) -> Void,
        ended: @escaping (PolicyEnd) -> Void
    ) { started(.failure(.notStarted(program: "torpor-policy-host", .noSuchFileOrDirectory))) }
}
