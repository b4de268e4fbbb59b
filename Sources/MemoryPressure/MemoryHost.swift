// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
package import Lifecycle
package import Notify

/// What the memory watch needs from the rest of the supervisor.
package protocol MemoryHost: AnyObject {
    /// The configuration in `[supervisor.memory]`.
    var memoryRules: MemorySpecification { get }
    /// The cgroup that contains those of the apps; nil if there is none.
    var cgroup: String? { get }
    /// The memory level has changed.
    func memoryPressure(from: MemoryLevel, to: MemoryLevel)
    /// Memory is no longer short: work that waited for that continues.
    func memoryIsEnough()

    /// The policy that orders evictions; nil if there is none.
    var evictionPolicy: String? { get }
    /// The order in which policies want apps terminated, first one first, each with the policy's reason.
    func evictionOrder(_ completion: @escaping ([(app: AppRuntime, policy: String, reason: String)]) -> Void)

    /// Whether an app receives the memory warning on its own socket.
    func hearsByChannel(_ app: AppID) -> Bool
    /// Whether the app is under a debugger, so that it must be left alone.
    func restsForTracer(_ app: AppRuntime) -> Bool
    /// A descriptor that the app stored was removed.
    func letGo(of entry: FDStore.Entry, _ app: AppRuntime)
}
