// SPDX-License-Identifier: Apache-2.0

/// The rooms for a person's session.
final class SessionRooms {
    private unowned(unsafe) let supervisor: Supervisor
    private(set) lazy var interruptions = Interruptions(supervisor)
    private(set) lazy var desktop = Desktop(supervisor)

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }
}
