// SPDX-License-Identifier: Apache-2.0

import Configuration
import Linux
import Testing
import TorporAPI
import Varlink
import VarlinkServer

@testable import Supervisor

@Suite("Who may ask what") struct AuthorityTests {
    private let authority: Authority

    init() {
        var specification = SupervisorSpecification(environment: [:], userID: Users.effectiveUID)
        specification.readers = ["70001"]
        specification.operators = ["70002"]
        specification.posters = ["70003"]
        authority = Authority(specification)
    }

    private func may(_ request: ManagerRequest, group: UInt32) -> Bool {
        authority.refusal(of: request, to: Peer(pid: 1, uid: 70_000, gid: 70_000, groups: [group])) == nil
    }

    @Test("Readers look, operators act too, posters post and do nothing else")
    func groups() {
        let post = ManagerRequest.post(PostRequest(app: "web", topic: "orders"))
        let stop = ManagerRequest.verb(VerbRequest(verb: .stop, apps: ["web"]))
        #expect([ManagerRequest.list, post, stop].map { may($0, group: 70_001) } == [true, false, false])
        #expect([ManagerRequest.list, post, stop].map { may($0, group: 70_002) } == [true, true, true])
        #expect([ManagerRequest.list, post, stop].map { may($0, group: 70_003) } == [false, true, false])
        let snapshot = ManagerRequest.snapshot(app: "web", offset: 0)
        for look in [snapshot, .icon(app: "web")] {
            #expect((70_001...70_004).map { may(look, group: $0) } == [true, true, false, false])
        }
        #expect([ManagerRequest.list, post, stop].map { may($0, group: 70_004) } == [false, false, false])
    }

    @Test("Posters make scenes for whoever connects, with nothing of their own, and launch none")
    func scenes() {
        var scene = OpenSceneRequest(template: "code", name: "alice")
        #expect((70_001...70_004).map { may(.openScene(scene), group: $0) } == [false, true, false, false])
        scene.background = true
        #expect((70_001...70_004).map { may(.openScene(scene), group: $0) } == [false, true, false, false])
        scene.remote = true
        #expect((70_001...70_004).map { may(.openScene(scene), group: $0) } == [false, true, true, false])
        scene.session = ["user": "root"]
        #expect((70_001...70_004).map { may(.openScene(scene), group: $0) } == [false, true, false, false])
    }
}
