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
        specification.exporters = ["70005"]
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
        #expect((70_001...70_004).map { may(.activities(app: nil), group: $0) } == [true, true, false, false])
        let going = ManagerRequest.continueActivity(ContinueActivityRequest(type: "org.example.note"))
        for request in [ManagerRequest.activities(app: "web"), going] {
            #expect((70_001...70_004).map { may(request, group: $0) } == [false, true, false, false])
        }
        #expect([ManagerRequest.list, post, stop].map { may($0, group: 70_004) } == [false, false, false])
    }

    @Test("Posters name senders only as the gateway does, operators in their own name, and root as it likes")
    func senders() throws {
        func sender(_ named: String?, uid: UInt32 = 70_000, group: UInt32) throws -> String? {
            let peer = Peer(pid: 1, uid: uid, gid: 70_000, groups: [group])
            return try authority.sender(named, postedBy: peer)
        }
        for name in ["http:ci", "nats:main", "mqtt:home", "http:ü x"] {
            for group in [UInt32(70_002), 70_003] { #expect(try sender(name, group: group) == name) }
        }
        for name in ["root", "rootapp", "uid 0", "torpord", "", "http:", "HTTP:ci", " http:ci", "http:c\u{1b}i"] {
            #expect(throws: FieldError.self, "\(name)") { try sender(name, group: 70_003) }
            #expect(try sender(name, group: 70_002) == "uid 70000 for \(name)")
            for uid in [UInt32(0), Users.effectiveUID] { #expect(try sender(name, uid: uid, group: 70_003) == name) }
        }
        #expect(try sender(nil, group: 70_003) == nil)
        let words = #expect(throws: FieldError.self) { try sender("root", group: 70_003) }
        #expect(words?.description.contains("sender must be http:NAME") == true)
    }

    @Test("Exporters read saved states and do nothing else; posters and readers are told who owns apps")
    func exporters() {
        let export = ManagerRequest.exportState(app: "web", offset: 0)
        let all: [UInt32] = [70_001, 70_002, 70_003, 70_004, 70_005]
        #expect(all.map { may(export, group: $0) } == [false, true, false, false, true])
        #expect(all.map { may(.owners, group: $0) } == [true, true, true, false, true])
        let post = ManagerRequest.post(PostRequest(app: "web", topic: "orders"))
        let give = ManagerRequest.importState(ImportStateRequest(app: "web", offset: 0, bytes: 1, data: [1]))
        for other in [post, give, .list, .mailbox(MailboxRequest(app: "web"))] {
            #expect(!may(other, group: 70_005))
        }
        let peer = Peer(pid: 1, uid: 70_000, gid: 70_000, groups: [70_005])
        #expect(authority.refusal(ofAllBy: peer) == nil)
    }

    @Test("A refusal names root, the keys that would do, the file, and whether they are set")
    func refusals() {
        let peer = Peer(pid: 1, uid: 70_000, gid: 70_000, groups: [])
        let unset = Authority(SupervisorSpecification(environment: [:], userID: 0), file: "/etc/torpor/torpor.toml")
        #expect(
            unset.refusal(ofAllBy: peer)
                == "user 70000 may not look at this supervisor, nor change anything: root may (‘sudo torpor’), and the "
                + "members of groups that readers, operators or posters under [supervisor] in /etc/torpor/torpor.toml names "
                + "(none of them is set)"
        )
        let stop = ManagerRequest.verb(VerbRequest(verb: .stop, apps: ["web"]))
        #expect(unset.refusal(of: stop, to: peer)?.hasSuffix("names (it is not set)") == true)
        let end = "under [supervisor] names, from their next login on"
        #expect(authority.refusal(of: stop, to: peer)?.hasSuffix("that operators " + end) == true)
        let list = authority.refusal(of: .list, to: peer)
        #expect(list?.hasSuffix("that readers or operators " + end) == true)
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
