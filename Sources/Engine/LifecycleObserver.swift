// SPDX-License-Identifier: Apache-2.0

package import Lifecycle

/// A part of torpord (a ``Room``) that follows the lifecycles of apps. It is added to the ``Engine`` once, which then
/// notifies it about every app.
///
/// Observers are called in the order in which they were added. Requests and events that an observer causes wait until
/// all earlier decisions are carried out.
package protocol LifecycleObserver: AnyObject {
    /// Called when an app was added while torpord runs, without a new configuration, such as a new scene. The app has
    /// no history yet.
    func added(_ app: AppRuntime)
    /// Called when an app has entered a state. ``AppRuntime/lastState`` is still the previous state.
    func entered(_ app: AppRuntime, from: AppState, to: AppState)
    /// Called when an incarnation has ended, and its processes are gone. ``AppRuntime/run`` stays until all observers
    /// were called.
    func ended(_ app: AppRuntime, _ ending: Ending)
    /// Called with apps that may have changed, after everything decided for them was carried out. Calls are frequent,
    /// so they must cost almost nothing for apps that the observer does not deal with.
    func touched(_ apps: [AppRuntime])
    /// Called when an app has left the configuration and has stopped for good: remove everything about it from memory
    /// and disk. Another app may get its id soon.
    func forget(_ app: AppRuntime)
}

extension LifecycleObserver {
    package func added(_ app: AppRuntime) {}
    package func entered(_ app: AppRuntime, from: AppState, to: AppState) {}
    package func ended(_ app: AppRuntime, _ ending: Ending) {}
    package func touched(_ apps: [AppRuntime]) {}
}
