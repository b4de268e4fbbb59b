// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Lifecycle

extension AppDefinition {
    /// Extracts the settings that the lifecycle core needs from an app's configuration.
    package init(_ app: AppSpecification) {
        self.init(
            name: app.name,
            rules: app.rules,
            requires: app.requires,
            after: app.after,
            launchesIntoForeground: app.launch == .foreground,
            needsMemory: app.memoryNeeded != nil || app.scenes?.maxLive != nil
                || app.data.protection.kind != nil
        )
    }
}
