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
        var finding = PolicyFinding()
        switch PolicyProbe.run(path, options, settings) {
        case .accepted(let policy):
            finding.selectors = PolicyProbe.selectors(in: options, of: policy)
                .map { PolicySelector(option: $0.option, text: $0.text) }
        case .refusesOptions(let sentence): finding.refusal = sentence
        case .unusable, .unknown: return nil
        }
        return finding
    }
}
