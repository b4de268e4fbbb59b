// SPDX-License-Identifier: Apache-2.0

import CLinux

/// Locks by flock(2). A lock belongs to the open file, so it survives exec. The kernel releases the lock when no
/// process has the open file any longer.
public enum Locks {
    /// Takes the lock without blocking. Returns false if another open file holds the lock.
    public static func tryLock(_ descriptor: Int32, exclusive: Bool = true) throws(Errno) -> Bool {
        try callUnlessBlocked { tlx_flock(descriptor, exclusive ? 2 : 1) } != nil
    }

    /// Releases the lock.
    public static func unlock(_ descriptor: Int32) throws(Errno) { try call { tlx_flock(descriptor, 0) } }
}
