// SPDX-License-Identifier: Apache-2.0

/// The interface `io.torpor.App` in Varlink's own language: the calls between an app and its supervisor on the app's
/// own socket (`TORPOR_APP_SOCKET`).
public enum AppInterface {
    /// The interface's name.
    public static let name = "io.torpor.App"

    /// Why a call failed (`reason` of the error Failed).
    public enum FailureReason: String, Sendable {
        /// What the call names does not exist.
        case unknown
        /// A value is invalid.
        case invalid
        /// The app may not do it.
        case notPermitted = "not-permitted"
        /// The app has too many of that kind.
        case full
    }

    /// The errors of the interface, by their full names.
    public enum ErrorName {
        /// The caller is not a process of the app.
        public static let notPermitted = name + ".NotPermitted"
        /// Another process of the app, or another connection of the same process, is its delegate.
        public static let alreadyAttached = name + ".AlreadyAttached"
        /// The app has answered a message for which torpord expects no answer.
        public static let notInFlight = name + ".NotInFlight"
        /// The call came on the connection of Attach, which only carries messages to the delegate.
        public static let wrongConnection = name + ".WrongConnection"
        /// The message was already answered.
        public static let alreadyAnswered = name + ".AlreadyAnswered"
        /// There is no task with this token, or it has ended.
        public static let unknownTask = name + ".UnknownTask"
        /// There is no app of that name.
        public static let unknownApp = name + ".UnknownApp"
        /// The receiving app does not accept the topic.
        public static let notSubscribed = name + ".NotSubscribed"
        /// The mailbox of the receiving app is full.
        public static let mailboxFull = name + ".MailboxFull"
        /// No app opens the URL.
        public static let noHandler = name + ".NoHandler"
        /// The archive is larger than the app's `state_limit`.
        public static let tooLarge = name + ".TooLarge"
        /// The call failed; the message says why.
        public static let failed = name + ".Failed"
    }

    /// The text of the interface (https://varlink.org/Interface-Definition).
    public static let description = """
        # The lifecycle of an app: what the supervisor tells it, and what it can ask. Only processes of the app are
        # answered.
        #
        # One process of the app is its delegate: it calls Attach with "more" and keeps that connection open for
        # messages. Every other call uses another connection, and any process of the app may make it. Times in "_ms" are
        # milliseconds, in "_s" seconds. Absent values are null.
        interface io.torpor.App

        # A message to the app. id counts the messages of an incarnation from 1. name is a message of the lifecycle,
        # such as didEnterBackground. deadline_ms is the time left for the answer, null for no limit.
        # parameters by name: willFinishLaunching and didFinishLaunching have options (the launch options); restoreState
        # has path (a file that the app can read) and bytes; resumed has gap_s; willTerminate has reason; taskExpiring
        # has token, name and remaining_ms; didReceiveMemoryWarning has level (warning or critical for the machine,
        # limit when the app comes near its own). didReceiveEvent, didReceiveNotification, didReceiveRemoteNotification
        # and the other messages that waited in the app's mailbox have id (the number of the mail), topic, key, payload,
        # sender, count, first_at and last_at (microseconds since 1970); openURL also has url, source (the app that
        # opened it, null for a person) and type (the media type of a file, null for anything else).
        # willContinueActivity has type; continueActivity has type, title, payload, url and source (the app whose
        # activity it is, null for an app of another machine); didFailToContinueActivity has type and reason;
        # activityWasContinued has type and by (the app that continues it).
        # An app with scenes inside gets messages for each of them: sceneWillConnect, sceneDidBecomeActive,
        # sceneWillResignActive, sceneDidEnterBackground, sceneWillEnterForeground and sceneDidDisconnect have scene
        # (its name). sceneWillConnect also has options (session: the object that the scene was opened with, or null;
        # foreground: whether it is coming to the foreground; new: whether it was never connected before) and state
        # (path and bytes of its saved state, or null). didDiscardScenes is mail; its payload has names, those of the
        # scenes that were discarded.
        type Message (id: int, name: string, deadline_ms: ?int, parameters: object)

        # The result in an answer. pending: the real answer follows later. unhandled: the app has no use for a message
        # from its mailbox, which is offered to other apps then; for any other message it means done.
        type Result (done, failed, pending, unhandled)

        # A background task of the app.
        type Task (token: int, name: string)

        # A connected scene inside the app. state: inactive, active or background.
        type Scene (name: string, state: string)

        # An alert for people. state: scheduled, or open, which means that it came and was not answered. at: when it
        # comes next, or for when it was scheduled; opened_at: when an open one came; held_until: the end of the quiet
        # hours that it waits for, or will wait for when it is due; all in microseconds since 1970. calendar: of a
        # repeated one. Each time a repeated alert comes, it has a number of its own. permission is
        # null: an app does not see its questions for permissions.
        type Alert (
          number: int,
          app: string,
          id: string,
          state: string,
          title: string,
          body: string,
          urgency: string,
          at: ?int,
          opened_at: ?int,
          calendar: ?string,
          held_until: ?int,
          actions: [](id: string, label: string),
          url: ?string,
          permission: ?string
        )

        # A transfer. direction: download or upload. state: queued, running, waiting, done, failed or cancelled. cause
        # says why it waits: retry, network, power, memory, load, space, window, metered, login or, for a subscription,
        # interval. bytes of total have arrived, or were sent; rate is in bytes a second. Times are microseconds since
        # 1970. reason (a word) and error (a sentence) describe the last error. A transfer that is over stays until its
        # app has answered for it.
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

        # A message that waits in the app's mailbox, or is being delivered (in_flight). count: how many messages were
        # merged into it.
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
          in_flight: bool,
          attempts: ?int
        )

        # Makes the caller the app's delegate, and streams messages to it, each once the one before is answered. The
        # first reply has no message but the state of the app. A delegate that comes back, because the supervisor was
        # replaced or the connection broke, gives the incarnation, the id of the last message that it got (after) and
        # the tokens of the tasks that it still has (tasks): it gets no message twice, and loses neither messages nor
        # tasks. Nothing else may be sent on this connection: call Answer on another one.
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

        # Answers the message in flight. text: for failed, why; for pending, what the app is doing, in a sentence.
        # expected_ms: for pending, how long it takes from now; the deadline is extended as far as extension_limit
        # allows, that of didEnterBackground never. declines: what the app refuses of what it was offered: "url" and
        # "restoration" in an answer to a launch message; "snapshot" in one to didEnterBackground: none is taken, and
        # the existing one is removed. The same holds for a scene in answers to sceneWillConnect and
        # sceneDidEnterBackground.
        # fetch, in the answer to performFetch: "new-data", "no-data" or "failed"; the time of the next fetch depends on
        # it. In the background "new-data", in the answer to any message, says that the app shows something new: another
        # snapshot is taken.
        method Answer(id: int, result: Result, text: ?string, expected_ms: ?int, declines: ?[]string, fetch: ?string) -> ()

        # Begins a background task: while the app is in the background, it is not suspended until the task ends or its
        # time is up. remaining_ms is that of BackgroundTime. The task ends with the connection that began it.
        method BeginTask(name: string) -> (token: int, remaining_ms: ?int)

        # Ends a task.
        method EndTask(token: int) -> ()

        # Takes over tasks that were begun on a connection that broke, by token; returns those that still exist.
        method ClaimTasks(tokens: []int) -> (tasks: []Task)

        # How long the app may still run for its tasks; null while there is no limit, as in the foreground. When no more
        # than expiry_warning_ms are left, taskExpiring is sent, which waits while another message is not answered.
        method BackgroundTime() -> (remaining_ms: ?int, expiry_warning_ms: int)

        # Saves a state archive, which the app gets back at its next launch after it was evicted, it crashed or the
        # machine was rebooted: data (Base64, at most 512 KiB of it), or file, the name of a file in
        # TORPOR_STATE_DIRECTORY, which is copied. Replies when it is durable. It replaces an earlier archive. With
        # scene it is the archive of that scene, which gets it back when it connects again.
        method SaveState(data: ?string, file: ?string, scene: ?string) -> (bytes: int)

        # Removes the archive, if there is one: that of the app, or of the scene.
        method DiscardState(scene: ?string) -> ()

        # Saves a snapshot, a picture (PNG, JPEG, GIF, WebP) or a text of what the app shows, which replaces the one
        # before: data (Base64, at most 512 KiB of it), or file, the name of a file in TORPOR_STATE_DIRECTORY of at most
        # 4 MiB. Allowed only in the background, and while didEnterBackground is in flight. Replies when it is durable.
        # With scene it is the snapshot of that scene.
        method SaveSnapshot(data: ?string, file: ?string, scene: ?string) -> (bytes: int)

        # Removes the snapshot, if there is one, and takes none until the app enters the background again.
        method DiscardSnapshot(scene: ?string) -> ()

        # The app's state, launch options, tasks and connected scenes.
        method State() -> (
          app: string,
          incarnation: int,
          state: string,
          transition: ?string,
          options: ?object,
          tasks: []Task,
          scenes: ?[]Scene
        )

        # Posts a message to another app that accepts it from this one (accepts_from), as Post of io.torpor.Manager
        # does. Replies when it is durable.
        #
        # token, also of OpenURL, StartTransfer and ScheduleAlert, names the request, so that it can be repeated with the
        # same token if the connection is lost before the reply: it is carried out once. A string of 1 to 16 hexadecimal
        # digits, not zero; choose all 16 at random for each new request. change is then "repeated".
        method Post(
          app: string,
          topic: string,
          payload: ?object,
          coalesce: ?string,
          key: ?string,
          urgent: ?bool,
          token: ?string
        ) -> (id: ?int, change: string, outcome: string, message: ?string)

        # Opens a URL in another app. may_open of this app has to name its scheme. Replies when the request is durable,
        # with the app that opens it; that app is brought to the foreground. outcome is woken, told, waits or held-back,
        # the last with a message.
        method OpenURL(url: string, token: ?string) -> (app: string, id: ?int, outcome: string, message: ?string)

        # Whether an app opens URLs of a scheme. may_open of this app has to name it.
        method CanOpen(scheme: string) -> (can: bool)

        # Takes messages from the app's mailbox, the first ones first, at most max: for programs without a delegate.
        # With keep a message stays in the mailbox until a later call has its id in done, so that nothing is lost if the
        # program ends in between. With only, just the messages with these ids count. A reply has at most 4 MiB; more:
        # other messages wait.
        method Take(max: ?int, keep: ?bool, done: ?[]int, only: ?[]int) -> (mail: []Mail, more: ?bool)

        # Subscribes the app to messages of a topic, which may be a pattern of * and ?, as an entry of topics in its
        # configuration does; with end, unsubscribes it. A subscription survives restarts of the app, the supervisor and
        # the machine.
        method Subscribe(topic: string, coalesce: ?string, urgent: ?bool, wake: ?string, keep: ?bool, end: ?bool) -> ()

        # Names what the app must refresh before people see it again: the names gather until it comes to the foreground, and
        # the message refresh has them then; an app in the foreground gets it at once. At most 64 names, of 128 bytes each;
        # if more have gathered, the message has only "*". Replies when that is durable.
        method SetNeedsRefresh(names: []string) -> ()

        # Says what a user is doing in the app, which must be in the foreground: it is the app's current activity, which
        # another app, or the app on another machine, can continue. It ends with the next one, with EndActivity, with
        # the app, and five minutes after the app has left the foreground. type: letters, digits, dots, - and _, such as
        # org.example.note. payload has at most 64 KiB, title 512 bytes. state: it can only be continued with the
        # state that the app has saved.
        method SetActivity(type: string, title: ?string, payload: ?object, url: ?string, state: ?bool) -> ()

        # Ends the app's current activity, if there is one. An app that was about to continue it is told so.
        method EndActivity() -> ()

        # The app's settings: a member for each, null where it has no value. Durations are in seconds, sizes in bytes.
        # The file that TORPOR_SETTINGS names has the same content.
        method Settings() -> (settings: object)

        # Sets and unsets settings that are declared writable, all or none; the app gets no message about it. Replies
        # when the change is durable and in the file; changed names the settings whose values are different now.
        method SetSettings(values: ?object, unset: ?[]string) -> (changed: []string)

        # Downloads or uploads a file, even while the app is suspended or does not run. direction: download or upload.
        # file: a name below the app's state directory, or an absolute path below that or one of its data folders.
        # method: GET, PUT (the default of an upload) or POST, which is retried only with retry. session is "default" if
        # it is not given. events (true): the end of the session wakes the app. Transfers begun in the background are
        # always discretionary. Replies when the transfer is durable. The messages that follow: transferDidFinish,
        # transferNeedsLogin.
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

        # The app's transfers, of a session or all, in the order in which they were started. With more (true), a further
        # call returns those after the last of these: after is its id.
        method Transfers(session: ?string, after: ?int) -> (transfers: []Transfer, more: ?bool)

        # Cancels a transfer, about which the app gets no further message; removes one that is over.
        method CancelTransfer(id: int) -> ()

        # Answers a server that asks for a login: user and password, header (a whole Authorization field), or cancel,
        # which fails the transfer. Only the process that transfers keeps the login: if that process is lost, the app is
        # asked again.
        method AnswerLogin(id: int, user: ?string, password: ?string, header: ?string, cancel: ?bool) -> ()

        # Schedules an alert for people, and replaces one of the same id. at is RFC 3339, or without an offset a local
        # time in time_zone (local, or a name such as Europe/Berlin), or only 14:30, which is the next time that clocks
        # there show it; calendar is a calendar expression, for an alert that is repeated; with none of at, after_ms and calendar it comes now. urgency: low, normal or critical. At most 4
        # actions, whose ids the app is told. payload is an object that the app is told. wake: also wake the app in the
        # background when it comes. If the app is in the foreground then, it is told and nothing is shown. Replies when
        # the alert is durable. The message that follows: didReceiveLocalNotification.
        method ScheduleAlert(
          id: ?string,
          title: string,
          body: ?string,
          at: ?string,
          time_zone: ?string,
          after_ms: ?int,
          calendar: ?string,
          sound: ?string,
          badge: ?int,
          urgency: ?string,
          actions: ?[](id: string, label: string),
          url: ?string,
          payload: ?object,
          wake: ?bool,
          token: ?string
        ) -> (alert: Alert, warning: ?string)

        # Cancels the app's alerts with these ids, scheduled and open ones; without ids, all; with an empty list, none.
        # Returns the alerts and their numbers.
        method CancelAlert(ids: ?[]string) -> (numbers: []int, alerts: []Alert)

        # The app's alerts, and the number at its entry.
        method Alerts() -> (alerts: []Alert, badge: int)

        # Shows a number, 1 to 9999, at the app's entry, or with 0 none. Replies when that is durable.
        method SetBadge(count: int) -> ()

        # What applies to each permission that the configuration declares for the app: allow, deny, or ask, which means
        # withheld, since no person has answered. An app without a sandbox may do everything.
        method Permissions() -> (permissions: [](name: string, state: string))

        # Asks people for a permission that is declared and that no person has answered: by an alert with two buttons. People
        # are asked for each permission once, and at most once an hour for each app; the app cannot answer, change or
        # cancel the question. state is as in Permissions; asked: people are asked now, and the reply is durable; next_at:
        # when they can be asked, in microseconds since 1970, if it is too soon; message: why they are not asked. If the
        # answer changes the app's sandbox, the app is ended and launched again.
        method RequestPermission(name: string) -> (state: string, asked: bool, next_at: ?int, message: ?string)

        # The caller must not do that; message says why.
        error NotPermitted (message: string)

        # The app already has a delegate, the process pid. That may be the caller's own process, if it has not closed
        # its other connection.
        error AlreadyAttached (pid: int, message: string)

        # The last reply to Attach: the delegate called something (method, null if it cannot be read) on the connection of
        # Attach. Every call needs another connection, answers to messages too.
        error WrongConnection (method: ?string, message: string)

        # The message is not in flight; expected is the id of the one that is.
        error NotInFlight (id: int, expected: ?int, message: string)

        # The message was answered before; the first answer counts.
        error AlreadyAnswered (id: int, message: string)

        # The task does not exist, or it has ended.
        error UnknownTask (token: int, message: string)

        # The app does not exist; nearest is a similar name.
        error UnknownApp (name: string, nearest: ?string, message: ?string)

        # The app accepts no messages of the topic.
        error NotSubscribed (app: string, topic: string, message: string)

        # No app opens the URL.
        error NoHandler (url: string, message: string)

        # The app's mailbox is full.
        error MailboxFull (app: string, message: string)

        # The archive or the snapshot is larger than the app's limit.
        error TooLarge (limit: int, message: string)

        # The call failed; message says why and what to do. reason, for programs: unknown (what the call names does not
        # exist), invalid (a value), not-permitted, full (too many of that kind); null or absent for all others.
        error Failed (message: string, reason: ?string)

        """
}
