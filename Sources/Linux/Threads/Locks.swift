// SPDX-License-Identifier: Apache-2.0

import CLinux

/// flock(2): who holds a file is in charge. It goes with the open file, so it survives exec and ends with the process.
public enum Locks {
    /// Takes the lock without waiting: false when someone else has it.
    public static func tryLock(_ descriptor: Int32, exclusive: Bool = true) throws(Errno) -> Bool {
        try callUnlessBlocked { tlx_flock(descriptor, exclusive ? 2 : 1) } != nil
    }

    /// Lets it go.
    public static func unlock(_ descriptor: Int32) throws(Errno) { try call { tlx_flock(descriptor, 0) } }
}
