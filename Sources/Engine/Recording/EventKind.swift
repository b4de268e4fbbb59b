// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Lifecycle

/// The kinds of events in the event log and the journal. The raw value is the MESSAGE_ID of the journal, which
/// `systemd/torpor.catalog` explains; an id never changes its meaning and is never reused.
package enum EventKind: String, CaseIterable {
    // Events about an app's launches and states.
    case launched = "c67ff3161e2d46aeaab144264c90011c"
    case entered = "0573b4b920154dc1a982404b81de39c3"
    case changing = "7565877b47bc466eb816e4ea058600a4"
    case told = "57dc633c3e9c4f85be6eb2a83ffc7b47"
    case signalled = "6e8be470dfb24feea3498a397c67864e"
    case adopted = "20f5bee5ab38412c8463adc0bec2c633"

    // Events that record how an app ended.
    case ended = "9e4842199b9f4bb3842969b5ba5db38a"
    case evicted = "572aa4a2a5134a7d96b3f9fbafc8f5ea"
    case failed = "b723ccb0565a414ab4f141bd208229a6"
    case missedDeadline = "95446b2a42ed4a3bb0cfc6d8daea0ab4"
    case outOfMemory = "2aaa743c121c4fc49b526cad58ebf9dc"
    case notLaunched = "6fcda700067c43e1b487717192cfb8f2"
    case requirementFailed = "aa51dc9523e045cba6ce5227f3f59346"
    case gaveUp = "a25f3a2625a04a519bcb23357bd18540"

    // Events about problems with an app.
    case lateAnswer = "49ed4ba36c314b71ae6e1a734fa3e320"
    case outlivedGrace = "97700f5ce7dd4478bd7239eb1ca05919"
    case notStopped = "87dfb01a311041f29dab954723a3623c"
    case continuedByOthers = "2b99c41c4130422dbf68fd719d9ed23c"
    case overLimit = "3853a36f0ed6423abd5532aedf306d99"
    case lockHeld = "a52280b3eae248208adde96574438f19"
    case gpuInBackground = "155f418ba8d74a8bb33199596c54dfbb"
    case denied = "93b57e0c4d1f4e5aa0c2f86d3e917b54"
    case noStateDirectory = "761e4867751f4b3a8e671fc20cad4163"
    case stateNotKept = "c526b37db8c04c12b24bb5e9b580fb5e"
    case stateSetAside = "2221cb593ca845aca25c08ce8a68a6b7"
    case snapshotNotTaken = "15372c9715654fe9854834ae1e8d38da"
    case healthChecked = "685ff0e40b874bb9b782a9bcbc81c108"
    case coverFailed = "8a616131659b4a1c8102beb3f4333864"
    case hookFailed = "7735c1103a4c4ed2babf142bf629c558"
    case logTroubled = "fadd058472184a39900c3f291f988fdc"

    // Events about an app's bundle.
    case bundlePutBack = "0c4f7f0e2a4b4d5f9e61d3a8b7c25e94"

    // Events about an app's data folders.
    case dataCopied = "9126e3fb17204a7f84f45c79b4f70d12"
    case dataNotCleared = "50c02793cd0b4a97bf81806ce74d4222"
    case cachesRemoved = "898e549d71e24cfaa10fc535ce1110dc"
    case dataPurged = "530f2e4bc003488eb622b3eae6f51ae7"

    // Events about protected data.
    case dataLocked = "6f0b1f5d2d3c4a5e9b1c7a4d8e2f6031"
    case dataUnlocked = "0d9c3a7be4f1482ab65d1e90c7f3a824"
    case dataBusy = "b41e6a90c5d748f3a2e7095cd18f6b3d"
    case waitsForUnlock = "e7a2c1d4905b4f6e8d3b6f1a2c9047e5"

    // Events about an app's memory.
    case madeRoom = "622b836bf672486caac6cb81de5cadab"
    case pagedOut = "d360cdb0d9f64b2cbefa04540082c0ad"
    case nearLimit = "aa4a56dd8fd04fdaa7191c1a497e8b59"
    case belowLimit = "fc9b6bf446e446b19c9b691a985a6c6a"
    case waitsForMemory = "bbf7378c9cfb4639a0d60b2387b8f675"

    // Events about scenes.
    case sceneOpened = "657a027e9efb44b7bfd6cf8b308c72ea"
    case sceneDisconnected = "2f5d1cd4a70f45c8913fe3dbb76a813b"
    case sceneDiscarded = "894f933a2c324b36a8899aa7cbc6d328"
    case waitsForPlace = "12eba04f79b04a19b78d81834ddb68d5"

    // Events that wake an app.
    case woken = "4b45f490a75247a2afb5a5e77ba43a30"
    case notWoken = "1ad39696ce8e443eaf00ca6e48464b67"
    case wakeStorm = "a92b2064d826445c9f471eebac9024fd"
    case sleepsAgain = "7092486f7ea94c2292fa5091cc5d234b"
    case fetched = "7f321efbe8564f3fb8c4629de7e9094b"
    case fetchPutOff = "77f72db4b742462cab2164ce08dcc9e2"

    // Events about an app's sockets.
    case socketNotBound = "cf39894f0de143cfb59517c6fc2c0ae6"
    case socketBound = "185c90dd0a3d4972beee9ed1313470f5"
    case socketClosed = "8df7f10cf2b74d2f88479241357c4716"
    case backlogNearlyFull = "583d6a1846ae43cbb65f99a0c26586cf"

    // Events about messages to an app, and about its settings.
    case posted = "6ac98f0e17414a1cb760157393c8decb"
    case notHandled = "9bcc270ce885499797720aa66acf7863"
    case transfer = "8d7f974d26884a95b9cfe69c28fd165e"
    case alert = "5d0f6f0c1f7c4b7f9a4e0f5fb0c35e21"
    case settingsChanged = "b3f0c9a25d0f4d7d9a6c1e2f84f75b11"
    case settingsNotTaken = "d2c1f7e06f7b4a0cb2d9a2b6e4c83f52"
    case permission = "3c1f6f5b7a0e4f6b9d0a8c2e57d4b9a1"

    // Events about what an app itself sends to torpord.
    case said = "4a2a0e8af8ae45eeba5eba9acd44631d"
    case mainChanged = "b8351d67c573494692beff9111953557"
    case unheard = "70a0de6f70a44f9180793e47ab4d7f73"
    case descriptorClosed = "b79c34be42ae405e85e0c0cce069e790"

    case attached = "8799151e63d14d03b4e3d2f5ec31adcd"
    case answered = "0f530259bd044055a8f5b853a6f01bde"
    case answerFailed = "4f136d72dd264d1ea386b39c6133823b"
    case taskBegan = "9b2eafb9ba1349b2874839f4e87beb7a"
    case taskEnded = "a62fbd74f0314c868ef9d928055e7de1"
    case holdEnded = "cbb922d7e52d4ccfadcaddc09ebb89b0"
    case modeBegan = "a7398abc0a3d4e449f9a6e16371131d4"
    case modeEnded = "44b4398169ee47a982d989386bb1d626"
    case stateKept = "1515b2b079e842d187af33a54558f59d"
    case stateRemoved = "6d1c7e0b94a34f5c8e2b70d9f3a61c58"
    case snapshotTaken = "e43ba4cea8714aafb234cc1004461b95"

    // Events about requests and decisions that concern an app.
    case asked = "7063ec36c2114a1e9f7ffa42213188ef"
    case refused = "463ccee7b279451fae460fa3c94f79b1"
    case keptDown = "75fcc35e49d94e42baabb8af3cf9a35f"
    case asLeft = "722941bafc8f45cb801d22e13cd5e647"
    case advised = "577453d7117940d3a3d7a13842449b3e"
    case adviceNotTaken = "7e32bdc760214ed49a3039ba44add04a"
    case reconfigured = "6bc415c354744ed38f5963d98c4bbbaf"
    case removed = "c02111bc5b744894aea2d0f7d25566e6"
    case owned = "2f0c8a4e6b1d4c5f9a7e3d60b8f1c2a4"
    case disowned = "61d7e0b9a3f24d8e8c5b7a192e4f6d03"
    case ownershipExpired = "c48b5f1e7d924a06b3e8f0a26d9c7b15"
    case chatty = "717fd6d4a3d64d4fa085c62e6ed801da"

    // Events about torpord itself.
    case started = "60a3e35ce2e349bca74cb9f86f103752"
    case tookOver = "5bb3d875b95f4a91b7c3ceaa986ec359"
    case stopping = "b7840a59b26e43f2b367031d4741a422"
    case upgrading = "3816715fa43643539f62ca5bf55c2bde"
    case upgradeFailed = "db9d33552fb5421d9c68e3a14613a6ca"
    case keeperLost = "ec70a99060af47a7844a09a5de4bb383"
    case directoryDamaged = "6dd1904d0df9480495fe14e8b3b1201c"
    case configurationRead = "38e082ba1b7740d49ae323f8e3aadeeb"
    case configurationInvalid = "43743b7085b442b1aabfc41e0f547739"
    case policyChanged = "c371430663c141e392f49466bbfbe8ec"
    case storeChanged = "2ea1c8677b3145b0a9645facf2463545"

    // Events about the machine and the session.
    case machineSleeps = "ccca4f8efe6c45bf9e9d99dcf578fb70"
    case machineWoke = "e255e76978e748b79329a8ec4228605f"
    case memoryShort = "887e0d9225ba4b54bc8e55cbc64be187"
    case memoryEnough = "90e3fedba1084ded8edc16cb5505ec92"
    case clockChanged = "8398d3fbd802461880b530f513d2f80c"
    case sessionLocked = "a89196c1c976459fbb3d3b7b95ef6ded"
    case sessionUnlocked = "5b9c3054f67744aeb0bb94724da0f8d0"
    case gpsdNotBelieved = "576eb285556c4d11b357d2086636678d"

    /// The category of the event in the event log.
    package var category: String {
        switch self {
        case .launched: "launch"
        case .entered: "state"
        case .changing: "transition"
        case .told, .posted, .answered, .answerFailed: "message"
        case .notHandled: "unhandled"
        case .transfer: "transfer"
        case .alert: "alert"
        case .permission, .denied: "permission"
        case .taskBegan, .taskEnded, .holdEnded, .modeBegan, .modeEnded: "task"
        case .signalled: "signal"
        case .ended, .evicted, .failed, .missedDeadline, .outOfMemory, .notLaunched, .requirementFailed, .gaveUp: "exit"
        case .adopted, .lateAnswer, .outlivedGrace, .notStopped, .continuedByOthers, .overLimit, .lockHeld,
            .gpuInBackground,
            .noStateDirectory,
            .stateKept, .stateNotKept, .stateSetAside, .stateRemoved, .snapshotTaken, .snapshotNotTaken, .said,
            .mainChanged, .unheard, .descriptorClosed, .attached,
            .chatty, .socketNotBound, .socketBound, .socketClosed, .backlogNearlyFull, .dataCopied, .dataNotCleared,
            .cachesRemoved, .dataPurged, .sceneOpened, .sceneDisconnected, .sceneDiscarded, .waitsForPlace,
            .coverFailed, .hookFailed, .logTroubled, .healthChecked, .bundlePutBack, .dataLocked, .dataUnlocked,
            .dataBusy, .waitsForUnlock:
            "notice"
        case .asked, .refused: "request"
        case .owned, .disowned, .ownershipExpired: "owner"
        case .keptDown, .asLeft, .sleepsAgain: "goal"
        case .advised, .adviceNotTaken, .policyChanged: "policy"
        case .reconfigured, .removed, .configurationRead, .configurationInvalid, .settingsChanged, .settingsNotTaken:
            "configuration"
        case .started, .tookOver, .stopping, .upgrading, .upgradeFailed, .keeperLost, .directoryDamaged: "supervisor"
        case .storeChanged: "store"
        case .woken, .notWoken, .fetched, .fetchPutOff, .wakeStorm: "wake"
        case .memoryShort, .memoryEnough, .madeRoom, .pagedOut, .nearLimit, .belowLimit, .waitsForMemory: "memory"
        case .machineSleeps, .machineWoke, .clockChanged, .sessionLocked, .sessionUnlocked, .gpsdNotBelieved:
            "supervisor"
        }
    }

    /// The log level of the event, unless the caller sets another.
    package var level: LogLevel {
        switch self {
        case .changing, .told, .posted, .signalled, .sleepsAgain, .attached, .answered, .taskBegan, .taskEnded,
            .stateKept, .snapshotTaken, .pagedOut:
            .debug
        case .launched, .entered, .ended, .evicted, .said, .mainChanged, .asked, .keptDown, .asLeft, .advised,
            .adviceNotTaken,
            .reconfigured, .removed, .started, .tookOver, .stopping, .upgrading, .configurationRead, .policyChanged,
            .storeChanged, .holdEnded, .modeBegan, .modeEnded, .woken, .fetched, .fetchPutOff, .clockChanged,
            .memoryEnough, .madeRoom, .belowLimit, .waitsForMemory, .settingsChanged,
            .machineSleeps, .machineWoke, .sessionLocked, .sessionUnlocked, .socketBound, .dataCopied, .cachesRemoved,
            .dataPurged, .sceneOpened, .sceneDisconnected, .sceneDiscarded, .waitsForPlace, .alert, .dataLocked,
            .dataUnlocked, .waitsForUnlock, .owned, .disowned, .stateRemoved:
            .info
        case .unheard, .descriptorClosed, .refused, .chatty, .answerFailed, .nearLimit, .notWoken, .snapshotNotTaken,
            .coverFailed, .healthChecked, .permission, .denied:
            .notice
        case .adopted, .failed, .missedDeadline, .outOfMemory, .notLaunched, .requirementFailed, .lateAnswer,
            .outlivedGrace, .notStopped, .continuedByOthers, .overLimit, .lockHeld, .gpuInBackground, .noStateDirectory,
            .stateNotKept,
            .stateSetAside, .memoryShort, .wakeStorm, .socketNotBound, .socketClosed,
            .backlogNearlyFull, .gpsdNotBelieved, .notHandled, .transfer, .dataNotCleared, .settingsNotTaken,
            .bundlePutBack, .dataBusy, .ownershipExpired, .hookFailed, .logTroubled:
            .warning
        case .gaveUp, .upgradeFailed, .keeperLost, .directoryDamaged, .configurationInvalid: .error
        }
    }

    /// The separator between the app's name and the text: a space if the app is the subject of the text, otherwise a
    /// colon.
    package var link: String {
        switch self {
        case .entered, .changing, .adopted, .ended, .evicted, .failed, .missedDeadline, .outOfMemory, .notLaunched,
            .requirementFailed, .gaveUp, .lateAnswer, .outlivedGrace, .notStopped, .continuedByOthers,
            .overLimit, .lockHeld, .gpuInBackground, .denied, .noStateDirectory, .stateNotKept, .stateSetAside,
            .snapshotTaken,
            .snapshotNotTaken,
            .healthChecked, .bundlePutBack, .said, .asked, .keptDown, .asLeft, .advised, .removed,
            .chatty, .attached, .answered, .answerFailed, .taskBegan, .taskEnded, .stateKept, .holdEnded,
            .modeBegan, .modeEnded, .sleepsAgain,
            .madeRoom, .pagedOut, .nearLimit, .belowLimit, .waitsForMemory, .notWoken, .wakeStorm, .fetched,
            .fetchPutOff,
            .socketNotBound, .socketBound, .socketClosed,
            .backlogNearlyFull, .notHandled, .transfer, .alert, .dataCopied, .dataNotCleared, .cachesRemoved,
            .dataPurged,
            .sceneOpened, .sceneDisconnected, .sceneDiscarded, .waitsForPlace, .waitsForUnlock, .owned, .disowned,
            .ownershipExpired, .stateRemoved:
            " "
        case .launched, .woken, .told, .posted, .settingsChanged, .settingsNotTaken, .signalled, .mainChanged, .unheard,
            .descriptorClosed, .refused, .permission,
            .adviceNotTaken,
            .reconfigured, .started, .tookOver, .stopping, .upgrading, .upgradeFailed, .keeperLost, .directoryDamaged,
            .configurationRead, .configurationInvalid, .policyChanged, .storeChanged, .memoryShort, .memoryEnough,
            .machineSleeps, .machineWoke, .clockChanged, .sessionLocked, .sessionUnlocked, .gpsdNotBelieved,
            .coverFailed, .hookFailed, .logTroubled, .dataLocked, .dataUnlocked, .dataBusy:
            ": "
        }
    }

    /// The kind of event that records the end of a run of an app.
    package init(_ ending: Ending) {
        if ending.next == .gaveUp {
            self = .gaveUp
            return
        }
        self.init(ending.reason)
    }

    /// The kind of event that records the end of a run of an app, if only the reason is known.
    package init(_ reason: TerminationReason) {
        switch reason {
        case .exitSuccess, .stopped, .exitsOnSuspend, .shutdown, .forceQuit, .replaced, .permissionChanged,
            .protectedDataOpen:
            self = .ended
        case .evicted: self = .evicted
        case .launchDeadline, .backgroundDeadline, .watchdog, .taskExpired, .unresponsive: self = .missedDeadline
        case .oomKill, .memoryLimit: self = .outOfMemory
        case .launchFailed: self = .notLaunched
        case .dependencyFailed: self = .requirementFailed
        case .exitFailure, .signal, .coreDump, .unknown, .lockWhileSuspending, .wakeStorm, .gpuInBackground,
            .noPurposeString:
            self = .failed
        }
    }

    /// The kind of event that records a notice of the lifecycle core; nil if users need not see the notice.
    package init?(_ notice: Notice) {
        switch notice {
        case .missed, .messageMissed, .sceneMissed, .sceneRefused(_, missed: true): self = .lateAnswer
        case .suspendFailed: self = .notStopped
        case .stoppedAgain, .keepsRunning: self = .continuedByOthers
        case .killed: self = .outlivedGrace
        case .holdEnded: self = .holdEnded
        case .modeBegan: self = .modeBegan
        case .modeEnded: self = .modeEnded
        case .sleepsAgain: self = .sleepsAgain
        case .ownershipExpired: self = .ownershipExpired
        case .snapshotMissed: self = .snapshotNotTaken
        // Only policies need to know that the background time is used up. An app that refused a scene has answered
        // with a failure, which is recorded as `answerFailed`.
        case .backgroundTimeUsed, .sceneRefused(_, missed: false): return nil
        }
    }
}
