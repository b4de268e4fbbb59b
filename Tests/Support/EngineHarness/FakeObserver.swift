// SPDX-License-Identifier: Apache-2.0

package import Engine
package import Lifecycle

/// Writes down what it is told.
package final class FakeObserver: LifecycleObserver {
    package private(set) var diary: [String] = []
    /// What it last heard of each app's state.
    package private(set) var states: [AppID: AppState] = [:]
    package private(set) var endings: [AppID: Int] = [:]
    package private(set) var forgotten: [AppID] = []
    /// Runs when apps are touched.
    package var onTouch: (([AppRuntime]) -> Void)?
    /// Runs when an app ends.
    package var onEnd: ((AppRuntime) -> Void)?

    package init() {}

    package func entered(_ app: AppRuntime, from: AppState, to: AppState) {
        diary.append("\(app.name) \(from.rawValue) → \(to.rawValue)")
        states[app.id] = to
    }

    package func ended(_ app: AppRuntime, _ ending: Ending) {
        diary.append("\(app.name) ended")
        endings[app.id, default: 0] += 1
        onEnd?(app)
    }

    package func touched(_ apps: [AppRuntime]) {
        diary.append("touched " + apps.map(\.id).sorted().map(String.init).joined(separator: ","))
        onTouch?(apps)
    }

    package func forget(_ app: AppRuntime) {
        diary.append("\(app.name) forgotten")
        forgotten.append(app.id)
    }
}
