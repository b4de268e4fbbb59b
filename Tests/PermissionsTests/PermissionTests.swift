// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Permissions

@Suite("Permissions") struct PermissionTests {
    @Test("Names are read in normal form, and read back")
    func names() throws {
        let spellings = [
            "network": "network", "camera": "camera", "open-url": "open-url", "files:/srv/media": "files:/srv/media",
            "files:/srv//media/./:ro": "files:/srv/media:ro", "files:/": "files:/", "files:/:ro": "files:/:ro",
            "files:/a:b": "files:/a:b", "files:/run/user/*/x": "files:/run/user/*/x",
        ]
        for (text, normal) in spellings {
            let permission = try Permission(text)
            #expect(permission.name == normal)
            #expect(try Permission(normal) == permission)
        }
        for word in Permission.words { #expect(try Permission(word).name == word) }
    }

    @Test(
        "Others are refused with a sentence",
        arguments: [
            "", "Camera", "network ", "networks", "files", "files:", "files:srv", "files:~/x", "files:/a/../b",
            "files:/a\u{7}", "files:/a\nb", "files:/" + String(repeating: "x", count: 5000), "file:/a", "camera:ro",
            "kame\u{301}ra",
        ]
    )
    func bad(_ name: String) {
        #expect(throws: Permission.Problem.self) { try Permission(name) }
    }

    static func declaration(
        _ name: String,
        _ initial: PermissionDeclaration.Default = .ask,
        _ ports: [UInt16] = []
    ) throws -> PermissionDeclaration {
        var declaration = PermissionDeclaration(try Permission(name), purpose: "Why")
        declaration.initial = initial
        declaration.ports = ports
        return declaration
    }

    static func sandbox(_ declarations: [PermissionDeclaration]) -> Sandbox {
        var sandbox = Sandbox()
        sandbox.mode = .permissions
        sandbox.declarations = declarations
        return sandbox
    }

    @Test("The default counts until a person has answered")
    func defaults() throws {
        let sandbox = Self.sandbox([
            try Self.declaration("camera"), try Self.declaration("gpu", .allow), try Self.declaration("usb", .deny),
        ])
        #expect(sandbox.states().map(\.state) == [.asked, .allowed, .denied])
        #expect(sandbox.grants().devices == [.gpu])
        let answers = [
            PermissionAnswer(name: "camera", isAllowed: true), PermissionAnswer(name: "gpu", isAllowed: false),
            PermissionAnswer(name: "usb", isAllowed: true), PermissionAnswer(name: "tty", isAllowed: true),
        ]
        #expect(sandbox.states(answers).map(\.state) == [.allowed, .denied, .allowed])
        #expect(sandbox.grants(answers).devices == [.camera, .usb])
    }

    @Test("A wider scope than that of the answer asks again; a refusal counts for any")
    func scopes() throws {
        func state(_ ports: [UInt16], _ answered: [UInt16], _ isAllowed: Bool = true) throws -> PermissionState {
            let sandbox = Self.sandbox([try Self.declaration("network", .allow, ports)])
            let answer = PermissionAnswer(name: "network", isAllowed: isAllowed, scope: answered)
            return sandbox.states([answer])[0].state
        }
        #expect(try state([443], [443]) == .allowed)
        #expect(try state([443], [80, 443]) == .allowed)
        #expect(try state([443], []) == .allowed)
        #expect(try state([80, 443], [443]) == .asked)
        #expect(try state([], [443]) == .asked)
        #expect(try state([], [443], false) == .denied)
    }

    @Test("A gift is withheld from a sandboxed app that was not allowed it, and from no other")
    func gifts() throws {
        #expect(Sandbox().allows(.alerts))
        let sandbox = Self.sandbox([try Self.declaration("alerts", .allow), try Self.declaration("location")])
        #expect(sandbox.allows(.alerts))
        #expect(!sandbox.allows(.location) && !sandbox.allows(.transfers))
    }
}
