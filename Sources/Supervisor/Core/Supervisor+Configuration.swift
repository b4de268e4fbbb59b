// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import Lifecycle
import Linux
import Output
import Processes
import TorporAPI

/// Applies the specifications of apps.
extension Supervisor {
    package static let diskIsInvalid = "the configuration on disk is not valid: the previous one stays in force"

    /// The incarnation has ended: the next one uses the specification that is configured now.
    func takeNextSpecification(_ app: AppRuntime) {
        app.isOutdatedSinceRecovery = false
        guard let next = app.next else { return }
        let old = app.specification
        app.specification = next
        app.next = nil
        specificationChanged(app, from: old)
    }

    /// Applies changes of its specification to what exists for an app already.
    package func specificationChanged(_ app: AppRuntime, from old: AppSpecification) {
        app.capture?.log?.limits = LogLimits(app.specification)
        if app.specification.appLimits != old.appLimits { shares.limitsChanged(app, from: old.appLimits) }
        if app.specification.resources != old.resources { shares.profilesChanged(app) }
        if app.specification.declaredSettings != old.declaredSettings
            || app.specification.settingsFormat != old.settingsFormat
        {
            settings.declarationsChanged(app, from: old.declaredSettings)
        }
    }
}
