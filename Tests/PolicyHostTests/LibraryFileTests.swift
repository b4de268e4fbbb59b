// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import Linux
import Policies
import PolicyLibraries
import Testing

@testable import PolicyHost

/// Starts nothing: the policies of these tests are in this process.
private final class NoHosts: PolicyHostLauncher {
    var hostUser: (user: UInt32, group: UInt32)? { nil }

    func launch(
        _ plan: HostPlan,
        started: @escaping (Result<StartedHost, PolicyFailure>) -> Void,
        ended: @escaping (PolicyEnd) -> Void
    ) { started(.failure(.notStarted(program: "none", .noSuchFileOrDirectory))) }
}

@Suite("The file of a policy's library changes") struct LibraryFileTests {
    private let loop: EventLoop
    private let hosts = NoHosts()
    private let chain: PolicyChain
    private let path: String
    private let library: [UInt8]

    init() throws {
        loop = try EventLoop(ManualTime())
        chain = PolicyChain(loop: loop, view: try PolicyView(), hosts: hosts)
        path = try File.realPath(try Libraries.makeFolder("file")) + "/libadvisor.so"
        library = try File.read(Libraries.path("advisor.c"), limit: 16 << 20)
    }

    private func load() throws -> PolicySlot {
        var settings = PolicySettings(name: "own", path: path)
        settings.isIsolated = false
        chain.configure([settings])
        return try #require(chain.slots.first)
    }

    /// Writes into the file, as cp(1) does.
    private func overwrite(_ bytes: [UInt8]) throws {
        try File.open(path, .write).withRaw { raw throws(Errno) in try File.write(raw, at: 0, bytes) }
    }

    @Test("one that is refused while it is being written is loaded when it is whole")
    func halfWritten() throws {
        defer { chain.close() }
        try File.write(path, [])
        let slot = try load()
        try overwrite(library)
        try loop.settle()
        #expect(slot.state == .waiting, "\(slot.state)")
        #expect(slot.lastFailure?.contains("cannot be loaded") == true)
        try loop.pass(FailureLedger.afterOverwrite)
        #expect(slot.state == .ready && slot.statistics.failures == 0, "\(slot.state)")
    }

    @Test("so is one that was refused between two parts of it, but not one that stays as it is")
    func later() throws {
        defer { chain.close() }
        try File.write(path, [])
        let slot = try load()
        try loop.settle()
        guard case .refused = slot.state else {
            Issue.record("it is not refused: \(slot.state)")
            return
        }
        try overwrite(library)
        try loop.pass(FailureLedger.afterOverwrite)
        #expect(slot.state == .ready, "\(slot.state)")

        try File.write(path + ".other", [])
        var settings = PolicySettings(name: "other", path: path + ".other")
        settings.isIsolated = false
        chain.configure([settings])
        let other = try #require(chain.slots.first)
        try loop.pass(FailureLedger.afterOverwrite * 10)
        guard case .refused = other.state else {
            Issue.record("it is not refused: \(other.state)")
            return
        }
        #expect(other.retryAt == nil)
    }

    @Test("one in this process that was only touched is loaded again, and one with another content is refused")
    func touched() throws {
        defer { chain.close() }
        try File.write(path, library)
        let slot = try load()
        try loop.settle()
        #expect(slot.state == .ready, "\(slot.state)")
        // Both times are far from now, so that each of them is another.
        for microseconds: Int64 in [1_000_000, 2_000_000] {
            try File.open(path, .write).withRaw { raw throws(Errno) in
                try File.setModified(raw, microseconds: microseconds)
            }
            #expect(chain.reload("own"))
            try loop.settle()
            #expect(slot.state == .ready, "\(slot.state)")
        }
        try overwrite(library + [0])
        #expect(chain.reload("own"))
        try loop.settle()
        #expect(slot.state.name == "refused" && slot.lastFailure?.contains("torpor upgrade") == true, "\(slot.state)")
    }
}
