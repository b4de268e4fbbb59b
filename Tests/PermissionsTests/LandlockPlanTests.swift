// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Permissions

@Suite("Landlock rules") struct LandlockPlanTests {
    static func places() -> SandboxPlaces {
        var places = SandboxPlaces(executable: "/opt/a/bin/a")
        places.directory = "/opt/a"
        places.writable = ["/var/lib/torpor/apps/a"]
        places.runtime = "/run/torpor/apps/a"
        return places
    }

    static func grants(_ names: [String], ports: [UInt16] = []) throws -> PermissionGrants {
        PermissionGrants(
            try names.map { name in try PermissionTests.declaration(name, .allow, name == "network" ? ports : []) }
        )
    }

    /// The kernel's rights by version: linux/landlock.h.
    static let bits = [0, 13, 14, 15, 15, 16, 16, 16]

    @Test("All rights that a version knows need a rule, and no rule has others", arguments: 0...7)
    func rights(_ version: Int) throws {
        let grants = try Self.grants(["files:/srv", "files:/media:ro", "camera", "network"], ports: [443])
        let made = LandlockPlan(grants, Self.places(), version: version)
        #expect((made == nil) == (version == 0))
        guard let plan = made else { return }
        #expect(plan.handledFiles.rawValue == (1 << UInt64(Self.bits[version])) - 1)
        #expect(plan.handledNetwork == (version >= 4 ? 3 : 0))
        #expect(plan.ports == (version >= 4 ? [443] : []))
        #expect(plan.scoped == (version >= 6 ? 3 : 0))
        for rule in plan.rules {
            #expect(plan.handledFiles.isSuperset(of: rule.rights) && !rule.rights.isEmpty, "\(rule)")
            // Nothing makes device nodes.
            #expect(rule.rights.isDisjoint(with: LandlockRights(rawValue: 1 << 6 | 1 << 11)), "\(rule)")
        }
        func rights(_ path: String) -> LandlockRights? { plan.rules.last { $0.path == path }?.rights }
        #expect(rights("/srv")?.contains(.writeFile) == true)
        #expect(rights("/srv")?.contains(.truncate) == (version >= 3))
        #expect(rights("/media")?.contains(.writeFile) == false)
        #expect(rights("/opt/a")?.contains(.writeFile) == false)
        #expect(rights("/var/lib/torpor/apps/a")?.contains(.makeFile) == true)
        #expect(rights("/run/torpor/apps/a")?.contains(.makeFile) == false)
        #expect(rights("/dev/video*")?.contains(.deviceControl) == (version >= 5))
        #expect(rights("/dev/snd") == nil && rights("/home") == nil && rights("/tmp") == nil)
    }

    @Test("Without network no TCP port is open, with all of it none is closed")
    func network() throws {
        #expect(LandlockPlan(try Self.grants([]), Self.places(), version: 4)?.handledNetwork == 3)
        #expect(LandlockPlan(try Self.grants(["network"]), Self.places(), version: 7)?.handledNetwork == 0)
    }

    @Test("Landlock is needed unless all files are open and the network is not divided")
    func needed() throws {
        #expect(LandlockPlan.isNeeded(for: try Self.grants([])))
        #expect(LandlockPlan.isNeeded(for: try Self.grants(["files:/:ro"])))
        #expect(!LandlockPlan.isNeeded(for: try Self.grants(["files:/"])))
        #expect(!LandlockPlan.isNeeded(for: try Self.grants(["files:/", "network"])))
        #expect(LandlockPlan.isNeeded(for: try Self.grants(["files:/", "network"], ports: [80])))
    }

    @Test("What a kernel does not enforce is said, less with each version", arguments: 0...7)
    func unenforced(_ version: Int) throws {
        let sandbox = PermissionTests.sandbox([
            try PermissionTests.declaration("network", .allow, [443]), try PermissionTests.declaration("microphone"),
        ])
        let said = Unenforced.sentences(sandbox, sandbox.grants(), version: version, isRoot: false)
        func says(_ part: String) -> Bool { said.contains { $0.contains(part) } }
        #expect(says("is not launched") == (version == 0))
        guard version > 0 else { return }
        #expect(says("truncate") == (version < 3))
        #expect(says("all TCP ports") == (version < 4))
        #expect(says("control devices") == (version < 5))
        #expect(says("signal processes") == (version < 6))
        #expect(says("UDP") && says("Unix sockets that") && says("files exist") && says("microphone"))
        #expect(!says("root"))
        #expect(
            Unenforced.sentences(sandbox, sandbox.grants(), version: 7, isRoot: true).contains { $0.contains("root") }
        )
        #expect(Unenforced.sentences(Sandbox(), PermissionGrants(), version: 0, isRoot: true).isEmpty)
        for shares in [true, false] {
            let told = Unenforced.sentences(sandbox, sandbox.grants(), version: 7, isRoot: false, sharesIPC: shares)
            #expect(told.contains { $0.contains("System V") } == shares)
        }
    }
}
