// SPDX-License-Identifier: Apache-2.0

package import Configuration
import Engine
package import Lifecycle
import Linux
import Permissions
package import Processes

extension AppSpecification {
    /// The app's resource profile in a state: the values of `resources.STATE`, and the state's defaults for values that
    /// are not set there.
    package func profile(in state: AppState) -> StateProfile {
        var profile = StateProfile(of: state)
        guard let configured = self.resources[state] else { return profile }
        if let weight = configured.cpuWeight { profile.cpuWeight = weight }
        if let weight = configured.ioWeight { profile.ioWeight = weight }
        if let score = configured.oomScoreAdjust { profile.oomScoreAdjust = score }
        if let slack = configured.timerSlack { profile.timerSlack = slack }
        if let limit = configured.cpuMaximum { profile.cpuMaximum = limit == .max ? nil : limit }
        if let bytes = configured.memoryHigh { profile.memoryHigh = bytes == .max ? nil : bytes }
        if let bytes = configured.memoryLow { profile.memoryLow = bytes == 0 ? nil : bytes }
        return profile
    }

    /// The limits of the app as a whole. Without `limits.tasks` there is a default, so that a fork bomb does not use up
    /// the machine's processes. The memory limit does not count swap, which untrusted code could fill: it may have as
    /// much there again, so that all of it can be paged out.
    var appLimits: AppLimits {
        let saysTasks = self.limits.contains { $0.resource == ResourceLimit.tasks }
        return AppLimits(
            memory: self.memoryLimit,
            tasks: saysTasks ? self.taskLimit : TaskRoom.ofOneApp,
            isDefaultOfTasks: !saysTasks,
            swap: self.sandbox.mode == .agent ? self.memoryLimit : nil
        )
    }
}
