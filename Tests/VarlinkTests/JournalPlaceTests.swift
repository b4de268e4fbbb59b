// SPDX-License-Identifier: Apache-2.0

import Testing
import TorporAPI
import Varlink

@Suite("Whose an entry of the journal is") struct JournalPlaceTests {
    private static let own = "/system.slice/torpord.service/torpor-apps-1/web"

    private static func place(account: String? = "ada", cgroup: String? = "torpor-apps-1/web") -> JournalPlace {
        var place = JournalPlace(identifier: "web", units: ["torpord.service"])
        (place.supervisor, place.account, place.cgroup) = (0, account, cgroup)
        return place
    }

    private static func entry(_ uid: Int, cgroup: String? = nil, owner: Int? = nil, unit: String? = nil) -> JSON {
        [
            "_UID": .string("\(uid)"), "_SYSTEMD_CGROUP": .optional(cgroup),
            "_SYSTEMD_OWNER_UID": .optional(owner.map { "\($0)" }), "_SYSTEMD_UNIT": .optional(unit),
        ]
    }

    @Test("a process in the app's cgroup is the app's, whatever its user")
    func inside() {
        for group in [Self.own, Self.own + "/inner"] {
            #expect(Self.place().mayHave(Self.entry(33, cgroup: group), ofUser: 1000))
        }
    }

    @Test("other processes are not")
    func outside() {
        for group in [Self.own + "x", "/system.slice/torpord.service/torpor-apps-1/bob", "/user.slice/session-3.scope"]
        {
            #expect(!Self.place().mayHave(Self.entry(1000, cgroup: group), ofUser: 1000))
        }
        let ofBob = "/user.slice/user-1001.slice/user@1001.service/torpor-apps-1/web"
        #expect(!Self.place().mayHave(Self.entry(1000, cgroup: ofBob, owner: 1001), ofUser: 1000))
    }

    @Test("of a process that was gone the user counts")
    func gone() {
        #expect(Self.place().mayHave(Self.entry(1000), ofUser: 1000))
        #expect(Self.place().mayHave(Self.entry(0), ofUser: 1000))
        #expect(!Self.place().mayHave(Self.entry(1001), ofUser: 1000))
        #expect(!Self.place(account: nil).mayHave(Self.entry(1001), ofUser: nil))
        #expect(!Self.place(cgroup: nil).mayHave(Self.entry(1001), ofUser: 1000))
    }

    @Test("where apps have no cgroups, one of root may have changed its user, but is in the supervisor's unit")
    func withoutCgroups() {
        let place = Self.place(account: nil, cgroup: nil)
        let inside = Self.entry(33, cgroup: "/system.slice/torpord.service", unit: "torpord.service")
        #expect(place.mayHave(inside, ofUser: nil))
        #expect(place.mayHave(Self.entry(0), ofUser: nil))
        for unit in ["session-3.scope", "user@1001.service", "other.service", nil] as [String?] {
            #expect(!place.mayHave(Self.entry(1001, unit: unit), ofUser: nil), "\(unit ?? "none")")
        }
        let ofAda = Self.place(cgroup: nil)
        #expect(!ofAda.mayHave(Self.entry(33, unit: "torpord.service"), ofUser: 1000))
    }

    @Test("where nothing tells the process, it may be the app's")
    func unknown() {
        #expect(Self.place().mayHave(["MESSAGE": "old"], ofUser: 1000))
        #expect(JournalPlace(identifier: "web").mayHave(Self.entry(1001, owner: 1001), ofUser: nil))
    }
}
