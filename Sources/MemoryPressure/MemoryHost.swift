// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
package import Lifecycle
package import Notify

/// What the memory watch needs from the rest of the supervisor.
package protocol MemoryHost: AnyObject {
    /// The configuration in `[supervisor.memory]`.
    var memoryRules: MemorySpecification { get }
    /// The cgroup that contains the cgroups of all apps; nil if there is none.
    var cgroup: String? { get }
    /// Called when the memory level has changed.
    func memoryPressure(from: MemoryLevel, to: MemoryLevel)
    /// Called when memory is no longer short. Work that waited for this continues then.
    func memoryIsEnough()

    /// The policy that orders evictions; nil if there is none.
    var evictionPolicy: String? { get }
    /// Asks policies for the order in which to terminate apps. The result begins with the first app to terminate;
    /// `reason` is the policy's reason for that app's place.
    func evictionOrder(_ completion: @escaping ([(app: AppRuntime, policy: String, reason: String)]) -> Void)

    /// Whether the app gets the memory warning over its socket to torpord, instead of as a signal.
    func hearsByChannel(_ app: AppID) -> Bool
    /// Whether a debugger traces the app. Then the app is left alone.
    func restsForTracer(_ app: AppRuntime) -> Bool
    /// Called when torpord has removed a descriptor that the app had stored.
    func letGo(of entry: FDStore.Entry, _ app: AppRuntime)
}
