// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import TorporAPI

/// What /proc must show of each app in the end: a goal counts from the moment it was acknowledged.
struct Goals {
    enum Goal: String {
        /// One incarnation, none of its processes stopped; of a oneshot none, once it is done.
        case running
        /// One incarnation, all of its processes stopped.
        case stopped
        /// No process.
        case none
    }

    private let fleet: Fleet
    private(set) var of: [String: Goal] = [:]

    init(_ fleet: Fleet) {
        self.fleet = fleet
        for app in fleet.apps { of[app.name] = .running }
    }

    /// A verb was carried out for an app (its result was `ok`).
    mutating func acknowledged(_ verb: Verb, _ app: String) {
        switch verb {
        case .start, .foreground:
            of[app] = .running
            for other in fleet.required(by: app) where of[other] == Goal.none { of[other] = .running }
        case .background: of[app] = .running
        // An app that was not suspended goes on as it was.
        case .resume: if of[app] == .stopped { of[app] = .running }
        case .suspend: of[app] = .stopped
        case .stop, .kill:
            of[app] = Goal.none
            for other in fleet.dependents(of: app) { of[other] = Goal.none }
        // Back to where it was; one that was not to run becomes active.
        case .restart: if of[app] == Goal.none { of[app] = .running }
        case .interrupt, .reset, .hold, .own, .disown, .wait, .disconnect, .discard: break
        }
    }

    /// What is wrong with the living processes of an app, if anything.
    func problem(_ app: Fleet.App, _ members: [Census.Member]) -> String? {
        var expected = of[app.name] ?? .none
        if app.sort == .oneshot { expected = .none }
        let incarnations = Set(members.map(\.incarnation))
        let isRight =
            switch expected {
            case .none: members.isEmpty
            case .running:
                incarnations.count == 1 && members.count == app.processes && !members.contains(where: \.isStopped)
            case .stopped:
                // It may have been stopped before it had made its children, or while the one was there whose only work is
                // to make the last of them.
                // One that is launched on its way there has its background time first, and a mortal one ends sooner.
                incarnations.count == 1 && members.count <= app.processes + (app.processes > 1 ? 1 : 0)
                    && (app.sort == .mortal || members.allSatisfy(\.isStopped))
            }
        if isRight { return nil }
        let found = members.map { "\($0.pid) of incarnation \($0.incarnation)\($0.isStopped ? ", stopped" : "")" }
        return "\(app.name) should be \(expected.rawValue), /proc has \(found)"
    }
}
