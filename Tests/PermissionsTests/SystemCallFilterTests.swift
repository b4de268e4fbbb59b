// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Permissions

@Suite("The filter of system calls") struct SystemCallFilterTests {
    /// What the kernel does with a call: runs the filter as seccomp does.
    static func run(
        _ filter: SystemCallFilter,
        _ number: UInt32,
        _ arguments: [UInt64] = [],
        _ architecture: UInt32
    ) throws -> UInt32 {
        var accumulator: UInt32 = 0
        var index = 0
        while true {
            try #require(filter.instructions.indices.contains(index), "it runs over the end")
            let step = filter.instructions[index]
            index += 1
            switch step.code {
            case 0x20:
                switch step.value {
                case 0: accumulator = number
                case 4: accumulator = architecture
                default:
                    try #require(step.value >= 16 && step.value % 8 == 0)
                    let argument = Int(step.value - 16) / 8
                    accumulator = argument < arguments.count ? UInt32(truncatingIfNeeded: arguments[argument]) : 0
                }
            case 0x06: return step.value
            case 0x15: index += Int(accumulator == step.value ? step.ifTrue : step.ifFalse)
            case 0x35: index += Int(accumulator >= step.value ? step.ifTrue : step.ifFalse)
            case 0x45: index += Int(accumulator & step.value != 0 ? step.ifTrue : step.ifFalse)
            default: try #require(Bool(false), "an unknown instruction")
            }
        }
    }

    static let allow: UInt32 = 0x7fff_0000
    static func errno(_ number: UInt32) -> UInt32 { 0x5_0000 | number }

    struct Setting: Sendable, CustomTestStringConvertible {
        let names: [String]
        let mode: SandboxMode
        let architecture: SystemCallFilter.Architecture
        var testDescription: String { "\(names) \(mode) \(architecture)" }
    }

    static let settings: [Setting] = [[], ["network"], ["files:/", "camera"]].flatMap { (names: [String]) in
        SandboxMode.allCases.flatMap { mode in
            [
                Setting(names: names, mode: mode, architecture: .x86),
                Setting(names: names, mode: mode, architecture: .arm),
            ]
        }
    }

    @Test("Sockets are made of the families that were allowed", arguments: settings)
    func sockets(_ setting: Setting) throws {
        let filter = SystemCallFilter(try LandlockPlanTests.grants(setting.names), setting.mode, setting.architecture)
        #expect(filter.instructions.count <= SystemCallFilter.most)
        let socket = SystemCallFilter.socket.number(setting.architecture)
        let isOpen = setting.names.contains("network")
        for family: UInt32 in 0..<64 {
            let expected: Bool
            switch family {
            case 1, 16: expected = true
            case 2, 10, 17, 40: expected = isOpen
            default: expected = false
            }
            // Only the lower half counts: the kernel takes an int.
            let argument = 0xffff_ffff_0000_0000 | UInt64(family)
            let result = try Self.run(filter, socket, [argument], setting.architecture.audit)
            #expect(result == (expected ? Self.allow : Self.errno(13)), "\(family)")
        }
    }

    @Test("Only listed calls are refused, and namespaces to strangers", arguments: settings)
    func calls(_ setting: Setting) throws {
        let architecture = setting.architecture
        let filter = SystemCallFilter(try LandlockPlanTests.grants(setting.names), setting.mode, architecture)
        let isAgent = setting.mode == .agent
        var refused = Set(SystemCallFilter.machine.map { $0.number(architecture) })
        if isAgent { refused.formUnion(SystemCallFilter.strangers.map { $0.number(architecture) }) }
        if !setting.names.contains("network") { refused.insert(SystemCallFilter.ring.number(architecture)) }
        let special = [SystemCallFilter.socket, SystemCallFilter.clone3].map { $0.number(architecture) }
        for number: UInt32 in 0..<512 where !special.contains(number) {
            let result = try Self.run(filter, number, [], architecture.audit)
            #expect(result == (refused.contains(number) ? Self.errno(1) : Self.allow), "\(number)")
        }
        let clone = SystemCallFilter.clone.number(architecture)
        let user = try Self.run(filter, clone, [0x1000_0011], architecture.audit)
        #expect(user == (isAgent ? Self.errno(1) : Self.allow))
        #expect(try Self.run(filter, clone, [0x3d_0f00], architecture.audit) == Self.allow, "a thread")
        let clone3 = try Self.run(filter, SystemCallFilter.clone3.number(architecture), [], architecture.audit)
        #expect(clone3 == (isAgent ? Self.errno(38) : Self.allow))
        let ioctl = SystemCallFilter.ioctl.number(architecture)
        #expect(try Self.run(filter, ioctl, [0, 0x5412], architecture.audit) == (isAgent ? Self.errno(1) : Self.allow))
        #expect(try Self.run(filter, ioctl, [0, 0x5401], architecture.audit) == Self.allow)
    }

    @Test("Programs of another architecture are ended, and x32 is not there")
    func architectures() throws {
        let filter = SystemCallFilter(PermissionGrants(), .permissions, .x86)
        let i386: UInt32 = 0x4000_0003
        #expect(try Self.run(filter, 102, [], i386) == 0x8000_0000)
        let socket = SystemCallFilter.socket.number(.x86)
        #expect(try Self.run(filter, 0x4000_0000 | socket, [2], 0xc000_003e) == Self.errno(38))
    }
}
