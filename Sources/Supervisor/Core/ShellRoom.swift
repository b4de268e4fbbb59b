// SPDX-License-Identifier: Apache-2.0

package import Engine

/// A room (a part of the supervisor) that uses other parts too. Conforming types declare `supervisor` as
/// `unowned(unsafe) let`: the supervisor owns each room and outlives it, and reference counting would cost some 20 ns
/// on each of many accesses.
package protocol ShellRoom: Room {
    var supervisor: Supervisor { get }
}

extension ShellRoom {
    package var engine: Engine { supervisor.engine }
    package var recorder: Recorder { supervisor.recorder }
}
