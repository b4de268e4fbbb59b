// SPDX-License-Identifier: Apache-2.0

import Engine

/// What the watch over file locks needs of other rooms, and no more.
protocol LockHost: AnyObject {
    /// Nothing is in the way: the app's processes are stopped.
    func beginStopping(_ app: AppRuntime)
    /// Calls back unless the app plays or records sound and may do so in the background.
    func lookForSound(of app: AppRuntime, _ completion: @escaping () -> Void)
}
