// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import Lifecycle
import Linux
import Output
import Processes
import TorporAPI

/// What apps and the supervisor go by.
extension Supervisor {
    /// In half a sentence.
    package static let diskIsInvalid = "the configuration on disk is not valid: the previous one stays in force"

    /// The incarnation is over: the next one goes by what the configuration says.
    func takeNextSpecification(_ app: AppRuntime) {
        app.isOutdatedSinceRecovery = false
        guard let next = app.next else { return }
        let old = app.specification
        app.specification = next
        app.next = nil
        specificationChanged(app, from: old)
    }

    /// Brings what was made for an app into line with its specification.
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
