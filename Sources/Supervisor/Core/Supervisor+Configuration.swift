// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import EventSources
import Lifecycle
import Linux
import Mailbox
import Output
import Processes
import TorporAPI
import Varlink

/// Applies the specifications of apps.
extension Supervisor {
    package static let diskIsInvalid = "the configuration on disk is not valid: the previous one stays in force"

    /// Called when an incarnation (one run of the app) has ended: the app's next incarnation uses the specification
    /// that is configured now.
    func takeNextSpecification(_ app: AppRuntime) {
        app.recoveredDigest = nil
        guard let next = app.next else { return }
        let old = app.specification
        app.specification = next
        app.next = nil
        specificationChanged(app, from: old)
    }

    /// Tells a running app that its `language` was changed: sends a message of the topic `locale`, with the environment
    /// variables that the app would get at its next launch in that language.
    package func tellLanguage(_ app: AppRuntime) {
        let language = (app.next ?? app.specification).presentation.language
        let variables = language.flatMap(AppPresentation.variables) ?? [:]
        let mail = MailDraft(
            topic: NotificationTopic.locale.rawValue,
            message: Message.didReceiveNotification.rawValue,
            payload: .strings(variables),
            coalescing: .latest,
            sender: "torpord"
        )
        wakes.notifications.tell(.locale, mail, to: app, "a change of its language")
    }

    /// Applies a changed specification to the app's log, limits, resource profiles and settings, without a relaunch.
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
