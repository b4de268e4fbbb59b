// SPDX-License-Identifier: Apache-2.0

import CPolicyWire
import Foundation
import Linux
import Policies
import PolicyLibraries
import Testing
import TorporPolicyABI

/// A host process with a view of three apps, and what a test wants to ask of it.
enum Hosts {
    static let program: String = {
        for start in [ThisProcess.executable] + CommandLine.arguments {
            var folder = start.flatMap { File.parent(of: $0) }
            for _ in 0..<4 {
                guard let here = folder else { break }
                if File.isExecutable(here + "/torpor-policy-host") { return here + "/torpor-policy-host" }
                folder = File.parent(of: here)
            }
        }
        return Libraries.root + ".build/debug/torpor-policy-host"
    }()

    /// Long enough for a machine that does much else.
    static let patience = Duration.seconds(60)

    static func view() throws -> PolicyView {
        let view = try PolicyView()
        for (place, name) in ["web", "db", "cache"].enumerated() { view.put(place, name: name, tags: ["demo"]) }
        view.system.now = 123_456
        return view
    }

    static func start(
        _ path: String,
        options: [PolicyOption] = [],
        view: PolicyView? = nil,
        _ change: (inout HostProcess.Settings) -> Void = { _ in }
    ) throws -> HostProcess {
        let view = try view ?? self.view()
        var settings = HostProcess.Settings(program: program)
        settings.loadDeadline = patience
        change(&settings)
        return try HostProcess(
            library: try LibraryTrust.open(path),
            options: options,
            view: view.descriptor,
            viewSize: view.size,
            settings: settings
        )
    }

    /// Why a policy cannot be started.
    static func failure(_ path: String, options: [PolicyOption] = []) throws -> PolicyFailure {
        try #require(throws: PolicyFailure.self) { _ = try start(path, options: options) }
    }

    /// Why a question has no answer.
    static func failure(_ host: HostProcess, deadline: Duration = patience) throws -> PolicyFailure {
        try #require(throws: PolicyFailure.self) { try host.ask([event(TORPOR_EVENT_TIMER)], deadline: deadline) }
    }

    static func event(
        _ kind: torpor_policy_event_kind,
        app: UInt32 = .max,
        from: UInt32 = 0,
        to: UInt32 = 0,
        delay: Int64 = 0
    ) -> torpor_policy_event {
        var event = torpor_policy_event()
        event.kind = kind.rawValue
        event.app = app
        event.from = from
        event.to = to
        event.delay = delay
        return event
    }

    /// Whether there is no such process any more.
    static func isGone(_ pid: Int32) -> Bool { !File.exists("/proc/\(pid)") }
}
