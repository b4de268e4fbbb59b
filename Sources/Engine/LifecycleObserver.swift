// SPDX-License-Identifier: Apache-2.0

package import Lifecycle

/// A room that follows the lifecycles of apps. It is added to the ``Engine`` once and is told about every app from
/// then on, so that no list of apps can miss it.
///
/// Observers are called in the order in which they were added. Requests and events that they cause wait until all
/// earlier decisions are carried out.
package protocol LifecycleObserver: AnyObject {
    /// An app was added without a new configuration; nothing has happened to it yet.
    func added(_ app: AppRuntime)
    /// An app has entered a state. ``AppRuntime/lastState`` is still the previous one.
    func entered(_ app: AppRuntime, from: AppState, to: AppState)
    /// An incarnation has ended. Its processes are gone; ``AppRuntime/run`` stays until all observers were called.
    func ended(_ app: AppRuntime, _ ending: Ending)
    /// These apps may have changed, and everything decided for them is carried out. Called often: it must cost almost
    /// nothing for apps that the room does not deal with.
    func touched(_ apps: [AppRuntime])
    /// An app has left the configuration and has stopped for good: nothing of it may stay in memory or on disk. Its
    /// id may be reused soon.
    func forget(_ app: AppRuntime)
}

extension LifecycleObserver {
    package func added(_ app: AppRuntime) {}
    package func entered(_ app: AppRuntime, from: AppState, to: AppState) {}
    package func ended(_ app: AppRuntime, _ ending: Ending) {}
    package func touched(_ apps: [AppRuntime]) {}
}
