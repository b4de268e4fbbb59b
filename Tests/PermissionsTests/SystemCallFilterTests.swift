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
        if architecture == .x86 { refused.formUnion(SystemCallFilter.machineOnX86) }
        let special = [SystemCallFilter.socket, SystemCallFilter.clone3, SystemCallFilter.socketPair]
            .map { $0.number(architecture) }
        for number: UInt32 in 0..<512 where !special.contains(number) {
            let result = try Self.run(filter, number, [], architecture.audit)
            #expect(result == (refused.contains(number) ? Self.errno(1) : Self.allow), "\(number)")
        }
        let clone = SystemCallFilter.clone.number(architecture)
        let user = try Self.run(filter, clone, [0x1000_0011], architecture.audit)
        #expect(user == (isAgent ? Self.errno(1) : Self.allow))
        #expect(try Self.run(filter, clone, [0x3d_0f00], architecture.audit) == Self.allow, "a thread")
        let clone3 = try Self.run(filter, SystemCallFilter.clone3.number(architecture), [], architecture.audit)
        #expect(clone3 == Self.errno(38))
        let limits = SystemCallFilter.limits.number(architecture)
        #expect(try Self.run(filter, limits, [0, 7], architecture.audit) == Self.allow)
        #expect(try Self.run(filter, limits, [1, 7], architecture.audit) == Self.errno(1))
        let pair = SystemCallFilter.socketPair.number(architecture)
        #expect(try Self.run(filter, pair, [1], architecture.audit) == Self.allow)
        #expect(try Self.run(filter, pair, [30], architecture.audit) == Self.errno(13))
        let ioctl = SystemCallFilter.ioctl.number(architecture)
        #expect(try Self.run(filter, ioctl, [0, 0x5412], architecture.audit) == (isAgent ? Self.errno(1) : Self.allow))
        #expect(try Self.run(filter, ioctl, [0, 0x5401], architecture.audit) == Self.allow)
    }

    @Test("Strangers without an IPC namespace of their own share no memory with others", arguments: [true, false])
    func ipc(_ isX86: Bool) throws {
        let architecture: SystemCallFilter.Architecture = isX86 ? .x86 : .arm
        var grants = PermissionGrants()
        grants.network = .ports([443])
        for mode in SandboxMode.allCases {
            for hasOwnIPC in [true, false] {
                let filter = SystemCallFilter(grants, mode, architecture, hasOwnIPC: hasOwnIPC)
                #expect(filter.instructions.count <= SystemCallFilter.most)
                for call in SystemCallFilter.sharedWithOthers {
                    let result = try Self.run(filter, call.number(architecture), [], architecture.audit)
                    #expect(result == (mode == .agent && !hasOwnIPC ? Self.errno(1) : Self.allow), "\(call.name)")
                }
            }
        }
    }

    @Test("With ports no socket connects where Landlock does not look", arguments: [true, false])
    func ports(_ isX86: Bool) throws {
        let architecture: SystemCallFilter.Architecture = isX86 ? .x86 : .arm
        var grants = PermissionGrants()
        for isLimited in [true, false] {
            grants.network = isLimited ? .ports([443]) : .all
            for mode in SandboxMode.allCases {
                let filter = SystemCallFilter(grants, mode, architecture)
                #expect(filter.instructions.count <= SystemCallFilter.most)
                let socket = SystemCallFilter.socket.number(architecture)
                for (kind, isOpen) in [(0, true), (6, true), (17, true), (262, false), (256, false), (132, false)] {
                    let result = try Self.run(filter, socket, [2, 1, UInt64(kind)], architecture.audit)
                    #expect(result == (isOpen || !isLimited ? Self.allow : Self.errno(93)), "\(kind)")
                }
                #expect(try Self.run(filter, socket, [29, 1, 0], architecture.audit) == Self.errno(13))
                for (call, flags) in SystemCallFilter.sending {
                    var arguments = [UInt64](repeating: 0, count: 6)
                    #expect(
                        try Self.run(filter, call.number(architecture), arguments, architecture.audit) == Self.allow
                    )
                    arguments[Int(flags)] = 0x2000_4000
                    let result = try Self.run(filter, call.number(architecture), arguments, architecture.audit)
                    #expect(result == (isLimited ? Self.errno(95) : Self.allow), "\(call.name)")
                }
            }
        }
    }

    @Test("Strangers schedule only themselves", arguments: settings)
    func scheduling(_ setting: Setting) throws {
        let architecture = setting.architecture
        let filter = SystemCallFilter(try LandlockPlanTests.grants(setting.names), setting.mode, architecture)
        let isAgent = setting.mode == .agent
        for (call, who) in SystemCallFilter.scheduling {
            for process: UInt64 in [0, 1, 4711] {
                var arguments = [UInt64](repeating: 0, count: 6)
                arguments[Int(who)] = process
                let result = try Self.run(filter, call.number(architecture), arguments, architecture.audit)
                #expect(result == (isAgent && process != 0 ? Self.errno(1) : Self.allow), "\(call.name) \(process)")
            }
        }
        // Number 0 of a user means all processes of the own user.
        for (name, user): (String, UInt64) in [("setpriority", 2), ("ioprio_set", 3)] {
            let call = try #require(SystemCallFilter.scheduling.first { $0.call.name == name }).call
            let result = try Self.run(filter, call.number(architecture), [user, 0, 19], architecture.audit)
            #expect(result == (isAgent ? Self.errno(1) : Self.allow), "\(name)")
        }
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
