// SPDX-License-Identifier: Apache-2.0

package import Lifecycle

/// A room that follows apps through their lives. It is added to the ``Engine`` once, and hears of every app from then on:
/// there is no list in which it could be forgotten.
///
/// Observers are told in the order in which they were added. What one causes (a request, a fact) waits, as ever, until all
/// that was decided before is carried out.
package protocol LifecycleObserver: AnyObject {
    /// There is one app more, without another configuration, and nothing has happened to it yet.
    func added(_ app: AppRuntime)
    /// An app has come into a state. Its ``AppRuntime/lastState`` is still the one before.
    func entered(_ app: AppRuntime, from: AppState, to: AppState)
    /// An incarnation is over. Its processes are gone, and what the app has of it is there until all have heard.
    func ended(_ app: AppRuntime, _ ending: Ending)
    /// Something about these apps may be otherwise than before, after all that was decided for them is carried out. Called
    /// often: it must cost next to nothing for apps of which the room has nothing.
    func touched(_ apps: [AppRuntime])
    /// An app has left the configuration and come to rest: it is gone for good, and nothing of it may stay, here or on the
    /// disk. Its id can be another's soon.
    func forget(_ app: AppRuntime)
}

extension LifecycleObserver {
    package func added(_ app: AppRuntime) {}
    package func entered(_ app: AppRuntime, from: AppState, to: AppState) {}
    package func ended(_ app: AppRuntime, _ ending: Ending) {}
    package func touched(_ apps: [AppRuntime]) {}
}
