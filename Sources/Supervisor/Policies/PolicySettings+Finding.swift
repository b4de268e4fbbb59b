// SPDX-License-Identifier: Apache-2.0

import Configuration
import Policies
import PolicyHost

extension PolicySettings {
    /// What the policy says of these options, before they replace others. Nil if that cannot be found out, as for a
    /// library that cannot be used: this is reported when the policy is loaded. Blocks until the policy is loaded.
    var finding: PolicyFinding? {
        guard let program = HostProcess.findProgram() else { return nil }
        var settings = HostProcess.Settings(program: program)
        settings.addressSpace = Self.addressSpace
        settings.loadDeadline = .seconds(5)
        let user = HostProcess.unprivilegedUser()
        settings.user = user?.user
        settings.group = user?.group
        let outcome = PolicyProbe.run(path, options, settings)
        switch outcome {
        case .accepted, .refusesOptions:
            return PolicyFinding(refusal: outcome.refusal, selectors: outcome.selectors(in: options))
        case .unusable, .unknown: return nil
        }
    }
}
