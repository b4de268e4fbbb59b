// SPDX-License-Identifier: Apache-2.0

package import Configuration
import Lifecycle
package import TorporAPI

extension DesktopApp {
    /// Creates an app from its configuration.
    package init(_ specification: AppSpecification) {
        self.init(name: specification.name)
        let presentation = specification.presentation
        (title, titles) = (presentation.title, presentation.titles)
        (summary, summaries) = (presentation.summary, presentation.summaries)
        icon = presentation.icon
        categories = presentation.categories
        schemes = specification.opening.schemes
        files = specification.opening.files
        isOneshot = specification.rules.isOneshot
    }

    /// Whether users expect the app in a menu: it can be in the foreground, and has a title.
    package var isForPeople: Bool { title != nil && !isOneshot }
}
