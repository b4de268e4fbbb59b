// SPDX-License-Identifier: Apache-2.0

import Linux
import TorporApp

/// Why a scene is not connected.
struct Refusal: Error, CustomStringConvertible {
    let description: String
}

/// The conformance scenario's app in Swift: README.md says what it does.
actor Recorder: AppDelegate {
    private let folder = ThisProcess.environment("CONFORMANCE") ?? "."
    private var visits = 0

    private func record(_ line: String) {
        let path = folder + "/rec." + (ThisProcess.environment("TORPOR_APP") ?? "none")
        try? File.append(path, Array((line + "\n").utf8))
    }

    private func isThere(_ name: String) -> Bool { File.exists(folder + "/" + name) }

    func willFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws {
        record("willFinishLaunching " + (options.isForeground ? "foreground" : "background"))
    }

    func restoreState(_ app: TorporApp, state: SavedState) async throws {
        let text = String(decoding: try state.read(), as: UTF8.self)
        record("restoreState " + text)
        visits = Int(text) ?? -1
    }

    func didFinishLaunching(_ app: TorporApp, options: LaunchOptions) async throws { record("didFinishLaunching") }

    func openURL(_ app: TorporApp, url: String) async throws { record("openURL " + url) }

    func didBecomeActive(_ app: TorporApp) async throws { record("didBecomeActive") }

    func willResignActive(_ app: TorporApp) async throws {
        record("willResignActive")
        while isThere("hold") { try await Task.sleep(for: .milliseconds(10)) }
    }

    func didEnterBackground(_ app: TorporApp) async throws {
        record("didEnterBackground")
        visits += 1
        try await app.saveState(Array("\(visits)".utf8))
        guard isThere("long") else { return }
        upload = try await app.beginBackgroundTask("upload") { _ in await self.expire() }
    }

    private var upload: BackgroundTask?

    private func expire() async {
        record("taskExpiring upload")
        await upload?.end()
    }

    func taskExpiring(_ app: TorporApp, task: String, remaining: Duration) async throws {
        record("taskExpiring of another: \(task)")
    }

    func willEnterForeground(_ app: TorporApp) async throws { record("willEnterForeground") }

    func resumed(_ app: TorporApp, after gap: Duration) async throws {
        record("resumed " + (gap > .zero ? "after a gap" : "at once"))
    }

    func didReceiveMemoryWarning(_ app: TorporApp, level: MemoryLevel) async throws {
        record("didReceiveMemoryWarning " + level.name)
    }

    func settingsDidChange(_ app: TorporApp, change: SettingsChange) async throws {
        record("settingsDidChange " + Self.lastPart(of: change.path))
    }

    func identityDidChange(_ app: TorporApp, change: SettingsChange) async throws {
        record("identityDidChange " + Self.lastPart(of: change.path))
    }

    private static func lastPart(of path: String?) -> String { path?.split(separator: "/").last.map(String.init) ?? "" }

    func significantTimeChange(_ app: TorporApp, change: TimeChange) async throws {
        record("significantTimeChange " + (change.timeZone ?? "none"))
    }

    func protectedDataWillBecomeUnavailable(_ app: TorporApp) async throws {
        record("protectedDataWillBecomeUnavailable")
    }

    func protectedDataDidBecomeAvailable(_ app: TorporApp) async throws { record("protectedDataDidBecomeAvailable") }

    func didReceiveEvent(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult {
        let payload = mail.payload.stringValue ?? ""
        record("didReceiveEvent \(mail.topic) \(payload)")
        if mail.topic == "fetch" {
            let server = ThisProcess.environment("CONFORMANCE_SERVER") ?? ""
            _ = try await app.download(server + payload, to: payload, session: "files")
        }
        return mail.topic == "left" ? .unhandled : .done
    }

    func didReceiveNotification(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult {
        record("didReceiveNotification " + mail.topic)
        return .done
    }

    func didReceiveRemoteNotification(_ app: TorporApp, mail: ReceivedMail) async throws -> MailResult {
        record("didReceiveRemoteNotification \(mail.topic) \(mail.payload.stringValue ?? "")")
        return .done
    }

    func handleEventsForBackgroundTransfer(_ app: TorporApp, session: String) async throws {
        record("handleEventsForBackgroundTransfer " + session)
    }

    func transferDidFinish(_ app: TorporApp, transfer: FinishedTransfer) async throws {
        record("transferDidFinish \(Self.lastPart(of: transfer.path)) " + (transfer.error == nil ? "done" : "failed"))
    }

    func transferNeedsLogin(_ app: TorporApp, login: TransferLogin) async throws {
        record("transferNeedsLogin " + (login.realm ?? ""))
        try await app.answerLogin(login.id, user: "me", password: "tulip")
    }

    func sceneWillConnect(
        _ app: TorporApp,
        scene: String,
        options: SceneConnectionOptions,
        state: SavedState?
    ) async throws {
        let how = options.isForeground ? "foreground" : "background"
        let age = options.isNew ? "new" : "known"
        let session = options.session?["n"]?.intValue.map { "\($0)" } ?? "-"
        let text = try state.map { String(decoding: try $0.read(), as: UTF8.self) } ?? "-"
        record("sceneWillConnect \(scene) \(how) \(age) \(session) \(text)")
        if scene == "nobody" { throw Refusal(description: "there is no nobody") }
    }

    func sceneDidBecomeActive(_ app: TorporApp, scene: String) async throws { record("sceneDidBecomeActive " + scene) }

    func sceneWillResignActive(_ app: TorporApp, scene: String) async throws {
        record("sceneWillResignActive " + scene)
    }

    func sceneDidEnterBackground(_ app: TorporApp, scene: String) async throws {
        record("sceneDidEnterBackground " + scene)
        try await app.saveState(Array("\(scene) was here".utf8), scene: scene)
    }

    func sceneWillEnterForeground(_ app: TorporApp, scene: String) async throws {
        record("sceneWillEnterForeground " + scene)
    }

    func sceneDidDisconnect(_ app: TorporApp, scene: String) async throws { record("sceneDidDisconnect " + scene) }

    func didDiscardScenes(_ app: TorporApp, scenes: [String]) async throws {
        record("didDiscardScenes " + scenes.joined(separator: ","))
    }

    func willTerminate(_ app: TorporApp, reason: String) async throws { record("willTerminate " + reason) }

    func received(_ app: TorporApp, message: OtherMessage) async throws { record(message.name) }
}

try await TorporApp.run(Recorder())
