// SPDX-License-Identifier: Apache-2.0

extension ManagerInterface {
    /// The methods about what apps hand to the supervisor or keep with it, such as messages, transfers, alerts, data and
    /// settings, and those about the supervisor itself.
    static let contentMethods = """
        # Posts a message about a topic to an app, which gets it now or when it wakes; replies when it is durable.
        # payload is any JSON value. coalesce (all, latest, count, merge, net) and urgent, which wakes the app, default
        # to those of the app's topics. sender: who sends it; posters may name only http:NAME, nats:NAME and mqtt:NAME,
        # and what else an operator names becomes "uid N for NAME". remote: it is pushed from outside; the app gets
        # didReceiveRemoteNotification, and is woken only in the mode remote-notification. owned: fails with
        # NotOwned if the app is one of several machines and this one does not own it. change is added, changed
        # (merged into the queued message with this id), cancelled or repeated (by its token); outcome is told, woken,
        # waits or held-back, the last with a message.
        method Post(
          app: string,
          topic: string,
          payload: ?object,
          coalesce: ?string,
          key: ?string,
          urgent: ?bool,
          sender: ?string,
          remote: ?bool,
          owned: ?bool,
          token: ?string
        ) -> (id: ?int, change: string, outcome: string, message: ?string)

        # The messages that are queued for an app, and the limits. With take, the returned messages are removed; with
        # drop, the ids of messages, only these are returned and removed. A message that is being delivered stays.
        # unhandled: how many messages to the app are no longer delivered (see Unhandled). A reply has at most 4 MiB; more:
        # there are later messages, which a call with after returns, the id of the last one. take removes only what is
        # returned.
        method Mailbox(app: string, take: ?bool, drop: ?[]int, after: ?int) ->
          (mail: []Mail, limit: int, bytes: int, bytes_limit: ?int, unhandled: ?int, more: ?bool)

        # Messages that no app handled, or during which the app ended, the oldest first: of these apps, or with these
        # ids, or all. With payload, their payloads are included.
        method Unhandled(apps: ?[]string, ids: ?[]int, payload: ?bool) -> (unhandled: []UnhandledMail, left_out: ?int)

        # Posts an unhandled message again, to the app that it was sent to or to another, and removes it from the
        # unhandled ones. The reply is that of Post, with the app that gets it.
        method ReplayUnhandled(id: int, app: ?string) ->
          (app: string, id: ?int, change: string, outcome: string, message: ?string)

        # Removes unhandled messages: all of these apps, or those with these ids. Returns the ids of the removed ones.
        method DropUnhandled(apps: ?[]string, ids: ?[]int) -> (ids: []int)

        # The transfers of these apps, or of all, in the order in which they were started. left_out: how many more there
        # are, since a reply with all of them would be too long; then long URLs and paths are cut too, and end in …
        method Transfers(apps: ?[]string, session: ?string) -> (transfers: []Transfer, left_out: ?int)

        # Cancels transfers that are not over: all of these apps, or those with these ids. The apps get a message about
        # each, as about any that failed. Returns the ids of the cancelled ones.
        method CancelTransfers(apps: ?[]string, ids: ?[]int) -> (ids: []int)

        # Schedules an alert of an app, as ScheduleAlert of io.torpor.App does. An operator may have it open any URL.
        # warning: no app opens its URL now.
        method ScheduleAlert(
          app: string,
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

        # The alerts of these apps, or of all: the open ones, then the scheduled ones by their time. problem: why open
        # alerts are on no desktop.
        method Alerts(apps: ?[]string) -> (alerts: []Alert, problem: ?string, left_out: ?int)

        # Cancels scheduled alerts and dismisses open ones: those of these apps with these ids or numbers, or all if
        # neither is given; an empty list is no alert. Without apps, an id that alerts of several apps have is refused.
        # Their apps are not told. Returns the alerts and their numbers.
        method CancelAlerts(apps: ?[]string, ids: ?[]string, numbers: ?[]int) -> (numbers: []int, alerts: []Alert)

        # Answers an open alert as a click does: by its number, or by its id, if only one app has an open alert of that
        # id; app names the app, by a pattern too. action: default, or the id of one of its actions.
        method AnswerAlert(number: ?int, app: ?string, id: ?string, action: ?string) -> ()

        # Shows a number, 1 to 9999, at the app's entry, or with 0 none.
        method SetBadge(app: string, count: int) -> ()

        # The data folders of these apps, by exact names, or of all apps that have any, including those that the
        # configuration no longer has. They are measured now, which may take a while.
        method Data(apps: ?[]string) -> (data: []DataFolders)

        # Removes the content of these data folders of an app (documents, library, caches, tmp), or, without folders, of
        # all of them, so that its next launch is its first. The app must not run. left: how many files could not be
        # removed; message says which and why.
        method PurgeData(app: string, folders: ?[]string) -> (app: string, removed: int, left: int, message: ?string)

        # What apps ask for; of all apps if none is named.
        method Permissions(apps: ?[]string) -> (permissions: []Permission, left_out: ?int)

        # Answers an app that asks for permissions: allow, deny, or reset (the default of the configuration counts again).
        # No name means all. An app whose sandbox changes is launched again; message says what follows.
        method AnswerPermissions(app: string, names: []string, answer: string) -> (message: ?string)

        # The protected data of all apps that have any.
        method Protection() -> (apps: []Protection)

        # Locks protected data: apps are told, have protected_deadline to close their files, and are ended if they do
        # not. Replies when it is locked; message says which files are still in use.
        method LockData() -> (message: ?string)

        # Unlocks protected data; the kernel must have its keys. message says which app's data stays locked, and why.
        method UnlockData() -> (message: ?string)

        # The settings of an app, in the order of their declarations. For operators only.
        method Settings(app: string) -> (settings: []Setting)

        # Sets and unsets settings of an app, all or none. values: an object with a value for each, in the form for
        # people, or a number, or true or false. Replies when the change is durable and in the app's file; changed names
        # the settings whose values are different now, message says what follows.
        method SetSettings(app: string, values: ?object, unset: ?[]string) -> (changed: []string, message: ?string)

        # The dependencies of all apps, sorted by name.
        method Graph() -> (apps: []GraphNode)

        # What this torpord has counted since it was started, and the memory of the machine and of its own processes.
        # ‘torpor metrics’ adds to it what follows from Describe, List and Policies.
        method Metrics() -> (metrics: []Metric)

        # Which torpord answers: its version, and how many its keeper has started, this one included. phase is starting
        # until the first launches are done, then running, and finally ending. configuration_failure is set while the
        # configuration on disk, when it was last read, was invalid. configuration_differs is true while its files on disk
        # are not those in force. troubles says which events or output of apps cannot be written now.
        method Describe() -> (
          version: string,
          instance: int,
          pid: int,
          apps: int,
          phase: ?string,
          upgrade_failure: ?string,
          configuration_failure: ?string,
          configuration_differs: bool,
          troubles: []string
        )

        # Replaces the running supervisor by the programs on disk, without touching any app. Replies before this torpord
        # hands over; after that the next instance answers Describe. When ok is false, nothing happens, and message says
        # why.
        method Upgrade() -> (ok: bool, message: string)

        """
}
