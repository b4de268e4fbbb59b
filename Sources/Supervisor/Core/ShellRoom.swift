// SPDX-License-Identifier: Apache-2.0

package import Engine

/// A part of the supervisor (a room) that uses other parts too. The supervisor owns it and outlives it, so the
/// reference is `unowned(unsafe)`: reference counting would cost some 20 ns on each of many accesses.
package protocol ShellRoom: Room {
    var supervisor: Supervisor { get }
}

extension ShellRoom {
    package var engine: Engine { supervisor.engine }
    package var recorder: Recorder { supervisor.recorder }
}
