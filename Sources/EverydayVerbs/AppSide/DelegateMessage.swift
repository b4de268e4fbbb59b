// SPDX-License-Identifier: Apache-2.0

/// The messages that `torpor app delegate` knows, by their names. A client has a list of its own, so that it does not
/// link the core: `scripts/check-sources promises` compares it with the messages that torpord sends.
enum DelegateMessage: String, CaseIterable {
    case willFinishLaunching
    case restoreState
    case didFinishLaunching
    case openURL
    case didBecomeActive
    case willResignActive
    case didEnterBackground
    case willEnterForeground
    case resumed
    case willTerminate
    case didReceiveMemoryWarning
    case taskExpiring
    case settingsDidChange
    case identityDidChange
    case significantTimeChange
    case performFetch
    case didReceiveEvent
    case didReceiveNotification
    case didReceiveRemoteNotification
    case protectedDataWillBecomeUnavailable
    case protectedDataDidBecomeAvailable
    case handleEventsForBackgroundTransfer
    case transferDidFinish
    case transferNeedsLogin
    case didReceiveLocalNotification
    case sceneWillConnect
    case sceneDidBecomeActive
    case sceneWillResignActive
    case sceneDidEnterBackground
    case sceneWillEnterForeground
    case sceneDidDisconnect
    case didDiscardScenes
    case refresh
    case willContinueActivity
    case continueActivity
    case didFailToContinueActivity
    case activityWasContinued

    /// Whether this kind of message concerns more than this app: if this app cannot use the message, another app may
    /// get it, or its sender is notified. All other messages concern only this app.
    var isForOthers: Bool {
        switch self {
        case .openURL, .continueActivity, .didReceiveEvent, .didReceiveNotification, .didReceiveRemoteNotification:
            true
        case .willFinishLaunching, .restoreState, .didFinishLaunching, .didBecomeActive, .willResignActive,
            .didEnterBackground, .willEnterForeground, .resumed, .willTerminate, .didReceiveMemoryWarning,
            .taskExpiring, .settingsDidChange, .identityDidChange, .significantTimeChange, .performFetch,
            .protectedDataWillBecomeUnavailable, .protectedDataDidBecomeAvailable, .handleEventsForBackgroundTransfer,
            .transferDidFinish, .transferNeedsLogin, .didReceiveLocalNotification, .sceneWillConnect,
            .sceneDidBecomeActive, .sceneWillResignActive,
            .sceneDidEnterBackground, .sceneWillEnterForeground, .sceneDidDisconnect, .didDiscardScenes, .refresh,
            .willContinueActivity, .didFailToContinueActivity, .activityWasContinued:
            false
        }
    }
}
