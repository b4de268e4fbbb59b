// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
package import Lifecycle
package import Notify

/// What the watch over memory needs of the rest of the supervisor, and no more.
package protocol MemoryHost: AnyObject {
    /// What `[supervisor.memory]` says.
    var memoryRules: MemorySpecification { get }
    /// The cgroup below which those of the apps are; nil where they have none.
    var cgroup: String? { get }
    /// Memory is short, more or less than before.
    func memoryPressure(from: MemoryLevel, to: MemoryLevel)
    /// Memory is no longer short: whoever waited for that goes on.
    func memoryIsEnough()

    /// The policy that says in which order apps are ended; nil where none does.
    var evictionPolicy: String? { get }
    /// In which order policies want apps to be ended, the first one first; each with the policy's reason.
    func evictionOrder(_ completion: @escaping ([(app: AppRuntime, policy: String, reason: String)]) -> Void)

    /// Whether an app hears on its own socket that memory is short.
    func hearsByChannel(_ app: AppID) -> Bool
    /// Whether a debugger holds the app, which is left alone until it lets go.
    func restsForTracer(_ app: AppRuntime) -> Bool
    /// A descriptor that the app gave into keeping is no longer there.
    func letGo(of entry: FDStore.Entry, _ app: AppRuntime)
}
