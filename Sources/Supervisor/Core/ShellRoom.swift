// SPDX-License-Identifier: Apache-2.0

package import Engine

/// A room that reaches other rooms too. The supervisor owns it and outlives it, so that nobody needs to count who looks at the
/// supervisor (`unowned(unsafe)`): a count is some 20 ns, and everything goes that way.
package protocol ShellRoom: Room {
    var supervisor: Supervisor { get }
}

extension ShellRoom {
    package var engine: Engine { supervisor.engine }
    package var recorder: Recorder { supervisor.recorder }
}
