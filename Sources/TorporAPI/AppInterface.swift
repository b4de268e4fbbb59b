// SPDX-License-Identifier: Apache-2.0

/// The interface `io.torpor.App` in Varlink's own language: what an app and its supervisor say to each other on the
/// app's own socket (`TORPOR_APP_SOCKET`).
public enum AppInterface {
    /// The interface's name.
    public static let name = "io.torpor.App"

    /// The errors of the interface, by their full names.
    public enum ErrorName {
        /// The caller is no process of the app.
        public static let notPermitted = name + ".NotPermitted"
        /// Another process of the app, or another connection of the caller's process, is its delegate.
        public static let alreadyAttached = name + ".AlreadyAttached"
        /// The message is not the one that waits for an answer.
        public static let notInFlight = name + ".NotInFlight"
        /// The message has been answered before.
        public static let alreadyAnswered = name + ".AlreadyAnswered"
        /// There is no such task, or it has ended.
        public static let unknownTask = name + ".UnknownTask"
        /// There is no app of that name.
        public static let unknownApp = name + ".UnknownApp"
        /// The app that was posted to takes nothing of the topic.
        public static let notSubscribed = name + ".NotSubscribed"
        /// The mailbox of the app that was posted to is full.
        public static let mailboxFull = name + ".MailboxFull"
        /// No app opens the URL.
        public static let noHandler = name + ".NoHandler"
        /// The archive is larger than the app's `state_limit`.
        public static let tooLarge = name + ".TooLarge"
        /// It failed; the message says why.
        public static let failed = name + ".Failed"
    }

    /// The text of the interface (https://varlink.org/Interface-Definition).
    public static let description = """
        # What an app hears of its lifecycle, and what it says. Only processes of the app are answered.
        #
        # One process of the app is its delegate: it calls Attach with "more" and keeps that connection for it; every
        # other call goes over other connections, of any process of the app. Times in "_ms" are milliseconds, in "_s"
        # seconds. Absent values are null.
        interface io.torpor.App

        # Something that the app is told. id counts the messages of an incarnation from 1. name is a message of the
        # lifecycle, such as didEnterBackground. deadline_ms is the time that is left for the answer, null for no bound.
        # parameters by name: willFinishLaunching and didFinishLaunching have options (the launch options), restoreState
        # path (a file that the app can read) and bytes, resumed gap_s, willTerminate reason, taskExpiring token, name and
        # remaining_ms, didReceiveMemoryWarning level (warning or critical, of the machine, or limit, when
        # the app comes near its own). didReceiveEvent, didReceiveNotification and didReceiveRemoteNotification, and others
        # that waited in the app's mailbox, have id (the number of the mail), topic, key, payload, sender, count, first_at and
        # last_at (microseconds since 1970); openURL has url too, source (the app that opened it, null for a person) and
        # type (the media type of a file, null for anything else).
        # An app with scenes inside is told of each of them in its own place: sceneWillConnect, sceneDidBecomeActive,
        # sceneWillResignActive, sceneDidEnterBackground, sceneWillEnterForeground and sceneDidDisconnect have scene (its
        # name). sceneWillConnect has options too (session: the object that the scene was opened with, or null; foreground:
        # whether it is about to be there; new: whether it was never connected before), and state (path and bytes of what was
        # saved of it, or null). didDiscardScenes is mail; its payload has names, of scenes that are no more.
        type Message (id: int, name: string, deadline_ms: ?int, parameters: object)

        # What an answer can say. pending: the answer proper comes later. unhandled: the app has no use for what waited in its
        # mailbox, and others are told; to any other message it is done.
        type Result (done, failed, pending, unhandled)

        # A background task of the app.
        type Task (token: int, name: string)

        # A scene inside the app that is connected. state: inactive, active or background.
        type Scene (name: string, state: string)

        # A transfer. direction: download or upload. state: queued, running, waiting, done, failed or cancelled; of one that
        # waits, cause: retry, network, power, memory, load, space, window, metered, login or, of a subscription,
        # interval. bytes of total are there, or were sent; rate: bytes a second. Times are microseconds since 1970.
        # reason (a word) and error (a sentence): what went wrong last. One that is over stays until its app has answered for it.
        type Transfer (
          id: int,
          app: string,
          session: string,
          direction: string,
          url: string,
          file: string,
          state: string,
          cause: ?string,
          bytes: int,
          total: ?int,
          rate: ?int,
          priority: int,
          discretionary: bool,
          events: bool,
          attempts: int,
          created_at: int,
          retry_at: ?int,
          ended_at: ?int,
          status: ?int,
          sha256: ?string,
          reason: ?string,
          error: ?string
        )

        # Something that waits to be told to the app, or is being told (in_flight). count: how many became one in it.
        type Mail (
          id: int,
          topic: string,
          name: string,
          key: ?string,
          payload: ?object,
          sender: string,
          count: int,
          first_at: int,
          last_at: int,
          wake: ?string,
          in_flight: bool
        )

        # Makes the caller the app's delegate, and streams messages to it, each as soon as the one before is answered.
        # The first reply has no message but says how the app is. A delegate that comes back, since the supervisor was
        # replaced or the connection broke, gives the incarnation, the id of the last message that it got (after), and
        # the tasks that it still has (tasks, by token): it gets no message twice, and loses neither messages nor tasks.
        method Attach(incarnation: ?int, after: ?int, tasks: ?[]int) -> (
          message: ?Message,
          app: ?string,
          incarnation: ?int,
          state: ?string,
          transition: ?string,
          options: ?object,
          tasks: ?[]Task,
          scenes: ?[]Scene
        )

        # Answers the message in flight. text: with failed, why, with pending, what it is doing, in a sentence. expected_ms:
        # with pending, how long it takes from now; the deadline is extended as far as extension_limit allows, that of
        # didEnterBackground never. declines: what the app does not want of what it was offered: "url" and "restoration"
        # in an answer to a launch message, "snapshot" in one to didEnterBackground: none is taken, and the one there is goes;
        # the same of a scene in answers to sceneWillConnect and sceneDidEnterBackground.
        # fetch, in the answer to performFetch: "new-data", "no-data" or "failed", by which the next time is chosen. In the
        # background "new-data", to any message, says that the app shows something new: another snapshot is taken.
        method Answer(id: int, result: Result, text: ?string, expected_ms: ?int, declines: ?[]string, fetch: ?string) -> ()

        # Begins a background task: while the app is in the background, it is not suspended before it is ended or the time
        # is up. remaining_ms is as that of BackgroundTime. The task ends with the connection that began it.
        method BeginTask(name: string) -> (token: int, remaining_ms: ?int)

        # Ends a task.
        method EndTask(token: int) -> ()

        # Takes over tasks that were begun on a connection which broke, by token; returns those that still are.
        method ClaimTasks(tokens: []int) -> (tasks: []Task)

        # How long the app may still run for its tasks; null while that is not limited, as in the foreground.
        method BackgroundTime() -> (remaining_ms: ?int)

        # Keeps a state archive, to be given back at a launch after the app was evicted, crashed or the machine was booted
        # anew: data (Base64, at most 512 KiB of it), or file, the name of a file in TORPOR_STATE_DIRECTORY, which is
        # copied. Replies when it is durable. An earlier archive is replaced. With scene it is that scene's own, given back
        # when that is connected again.
        method SaveState(data: ?string, file: ?string, scene: ?string) -> (bytes: int)

        # Forgets the archive, if there is one; of the app, or of the scene.
        method DiscardState(scene: ?string) -> ()

        # Keeps a snapshot, a picture (PNG, JPEG, GIF, WebP) or a text of what the app shows, in place of the one before:
        # data (Base64, at most 512 KiB of it), or file, the name of a file in TORPOR_STATE_DIRECTORY, at most 4 MiB. Only in
        # the background, and while didEnterBackground is answered. Replies when it is durable. With scene it shows that.
        method SaveSnapshot(data: ?string, file: ?string, scene: ?string) -> (bytes: int)

        # Forgets the snapshot, if there is one, and has none taken before the app enters the background again.
        method DiscardSnapshot(scene: ?string) -> ()

        # How the app is.
        method State() -> (
          app: string,
          incarnation: int,
          state: string,
          transition: ?string,
          options: ?object,
          tasks: []Task,
          scenes: ?[]Scene
        )

        # Tells another app something that accepts it of this one (accepts_from), as Post of io.torpor.Manager does. Replies
        # when it is on the disk.
        method Post(
          app: string,
          topic: string,
          payload: ?object,
          coalesce: ?string,
          key: ?string,
          urgent: ?bool,
          token: ?string
        ) -> (id: ?int, change: string, outcome: string, message: ?string)

        # Has another app open a URL, whose scheme may_open of this one names. Replies when it is on the disk, with the app that
        # opens it; that one is brought to the foreground for it. outcome is woken, told, waits or held-back, the last with a
        # message.
        method OpenURL(url: string, token: ?string) -> (app: string, id: ?int, outcome: string, message: ?string)

        # Whether an app opens URLs of a scheme, which may_open of this one names.
        method CanOpen(scheme: string) -> (can: bool)

        # Takes what waits for the app, the first first, at most max: for programs without a delegate. With keep it waits
        # on until its id is among done of a later call: then nothing is lost when the program ends in between.
        method Take(max: ?int, keep: ?bool, done: ?[]int) -> (mail: []Mail)

        # From now on the app takes what is posted to it of a topic, which may be a pattern of * and ?, as an entry of topics
        # in its configuration says it; with end, no longer. It outlives the app, the supervisor and the machine's boot.
        method Subscribe(topic: string, coalesce: ?string, urgent: ?bool, wake: ?string, keep: ?bool, end: ?bool) -> ()

        # What the app is set to: a member for each setting, null where it has no value. Durations are in seconds, sizes in
        # bytes. The file that TORPOR_SETTINGS names has the same.
        method Settings() -> (settings: object)

        # Sets and unsets settings whose declaration says writable, all or none; the app is not told of that. Replies when it
        # is on the disk and in the file; changed names those that are otherwise than before.
        method SetSettings(values: ?object, unset: ?[]string) -> (changed: []string)

        # Has a file downloaded or uploaded, also while the app sleeps or does not run. direction: download or upload. file: a
        # name below the app's state directory, or an absolute path below that or one of its data folders. method: GET, PUT
        # (the default of an upload) or POST, which is tried again only with retry. Without session it is "default"; events
        # (true): the end of the session brings the app back. Of what is begun in the background, discretionary is always
        # true. Replies when it is on the disk. The messages that follow: transferDidFinish, transferNeedsLogin.
        method StartTransfer(
          session: ?string,
          direction: string,
          url: string,
          file: string,
          method: ?string,
          headers: ?[](name: string, value: string),
          sha256: ?string,
          discretionary: ?bool,
          events: ?bool,
          retry: ?bool,
          priority: ?int,
          token: ?string
        ) -> (id: int)

        # The app's transfers, of a session or all, in the order in which they were asked for.
        method Transfers(session: ?string) -> (transfers: []Transfer)

        # Ends a transfer, of which the app is not told any more; forgets one that is over.
        method CancelTransfer(id: int) -> ()

        # Answers a server that asks for a login: user and password, header (a whole Authorization field), or cancel, which
        # has the transfer fail. Nobody but the process that transfers keeps it: where that is lost, the app is asked again.
        method AnswerLogin(id: int, user: ?string, password: ?string, header: ?string, cancel: ?bool) -> ()

        # The caller may not do that; message says why.
        error NotPermitted (message: string)

        # The app has a delegate already, the process pid. That may be the caller's own, which has not closed its other
        # connection.
        error AlreadyAttached (pid: int, message: string)

        # The message is not in flight; the one that is has the id expected.
        error NotInFlight (id: int, expected: ?int, message: string)

        # The message was answered before, and the first answer counts.
        error AlreadyAnswered (id: int, message: string)

        # There is no such task, or it has ended.
        error UnknownTask (token: int, message: string)

        # There is no such app; nearest is a name that comes close.
        error UnknownApp (name: string, nearest: ?string)

        # The app takes nothing of the topic.
        error NotSubscribed (app: string, topic: string, message: string)

        # No app opens the URL.
        error NoHandler (url: string, message: string)

        # As much waits for the app as may.
        error MailboxFull (app: string, message: string)

        # The archive, or the snapshot, has more bytes than the app may keep.
        error TooLarge (limit: int, message: string)

        # It failed; message says why and what to do.
        error Failed (message: string)

        """
}
