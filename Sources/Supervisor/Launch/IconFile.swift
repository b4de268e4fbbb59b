// SPDX-License-Identifier: Apache-2.0

package import Engine
import Linux
package import TorporAPI

extension AppIcon {
    /// Reads the icon of an app with the rights of its user. May block on a disk: call it on a background thread.
    package init(file path: String, of names: Account.Names?) {
        let reader: FileRights?
        do throws(LaunchError) {
            reader = try names.map { names throws(LaunchError) in try Account.find(names) }?.fileRights
        } catch {
            self.init(trouble: "\(path): \(error)")
            return
        }
        do throws(OwnedFile.Failure) {
            self.init(content: try OwnedFile.read(path, for: reader, limit: AppIcon.mostBytes))
        } catch {
            let isLarge = error == .errno(.fileTooLarge)
            self.init(
                trouble: "\(path): " + (isLarge ? "it has more than \(AppIcon.mostBytes >> 10) KiB" : "\(error)")
            )
        }
    }
}
