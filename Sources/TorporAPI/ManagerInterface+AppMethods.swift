// SPDX-License-Identifier: Apache-2.0

extension ManagerInterface {
    /// The methods that ask for apps and change their state, and those about events, the machine and policies.
    static let appMethods = """
        # All apps, sorted by name, or those that "apps" names. templates: the templates of scenes, if "apps" is
        # absent or empty.
        method List(apps: ?[]string) -> (apps: []App, templates: []SceneTemplate)

        # Everything about one app. Texts of the app have at most some KiB; truncated: texts and lists are shorter still,
        # since the reply would be too long.
        method Status(app: string) -> (status: AppStatus, truncated: ?bool)

        # Verbs. Called with "more" they reply once for each step of each app (app, state, transition, text), and
        # finally, without "continues", with the results; without "more", with the results only. wait = false replies as
        # soon as the goal is set; timeout_ms limits the waiting, not the goal. token (up to 16 hexadecimal digits,
        # chosen at random) names the request: if the connection is lost before the reply, repeat the call with the same
        # token; what was already carried out is not repeated but only waited for. Its lowest bit does not count. The
        # results of Stop include the apps that were stopped because they require one of "apps".
        # force, for Start: launch the app even if a policy is against it, or this machine does not own it. standby: launch
        # it only to be suspended. keep_state, for Stop and Restart: the next launch gets the state that the app saved.
        # until_boot, for Stop: the stop ends with this boot, and the next one launches the app as before.
        method Start(
          apps: []string,
          background: ?bool,
          standby: ?bool,
          force: ?bool,
          wait: ?bool,
          timeout_ms: ?int,
          token: ?string
        ) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        method Stop(
          apps: []string,
          keep_state: ?bool,
          until_boot: ?bool,
          wait: ?bool,
          timeout_ms: ?int,
          token: ?string
        ) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        method Restart(apps: []string, keep_state: ?bool, wait: ?bool, timeout_ms: ?int, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        # url, which the app is to open in the foreground, is for apps with a delegate.
        method Foreground(apps: []string, url: ?string, wait: ?bool, timeout_ms: ?int, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        # Opens a URL, or a file by its absolute path, whose media type is type, in the app that fits best (a host of
        # url_hosts, then url_schemes, then opens; of several the one that was used last), or in app. Brings that app to
        # the foreground, as Foreground does with a url, and replies when it has answered. If the app does not handle
        # it, the next that fits is asked, and the result is that app's.
        method Open(
          url: ?string,
          file: ?string,
          type: ?string,
          app: ?string,
          wait: ?bool,
          timeout_ms: ?int,
          token: ?string
        ) -> (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        # The apps that can open it, the one that Open chooses first.
        method Handlers(url: ?string, file: ?string, type: ?string) -> (handlers: []Handler)
        # The current activities of apps: what a user is doing there. With app, that of this app with its payload.
        method Activities(app: ?string) -> (activities: []Activity, left_out: ?int)
        # Brings an app that continues activities of this type (activities) to the foreground, tells it
        # willContinueActivity and continueActivity, and replies when it has answered: the app to, or the one that was
        # used last. The activity is that of the app from, or the latest of this type; or activity (title, payload and
        # url, as in SetActivity), if it comes from another machine, where its app is from. The app whose activity it is
        # is told activityWasContinued. With ask, it only says which app would continue the activity: the reply has app
        # and no other member.
        method ContinueActivity(
          type: string,
          from: ?string,
          to: ?string,
          activity: ?object,
          ask: ?bool,
          wait: ?bool,
          timeout_ms: ?int,
          token: ?string
        ) -> (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        # Creates a scene of a template unless one of that name exists, and brings it to the foreground or, with
        # background, launches it there. session: an object of at most 4 KiB, which the scene gets at each launch; the
        # first one given is kept. Replies as Foreground does, for the scene's app. remote: for a client outside this
        # machine that is about to connect to its socket: launches nothing, and fails if the connection would fail too.
        method OpenScene(
          template: string,
          name: string,
          session: ?object,
          background: ?bool,
          remote: ?bool,
          wait: ?bool,
          timeout_ms: ?int,
          token: ?string
        ) -> (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        # Ends scenes that are in the background or suspended. Their sessions and data stay, until they are opened or
        # woken.
        method DisconnectScenes(apps: []string, wait: ?bool, timeout_ms: ?int, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        # Ends scenes as Stop does, and removes all their data.
        method DiscardScenes(apps: []string, wait: ?bool, timeout_ms: ?int, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        # The templates, and the scenes of one of them, or of all. left_out: how many more scenes there are, since a
        # reply with all of them would be too long.
        method Scenes(template: ?string) -> (templates: []SceneTemplate, scenes: []Scene, left_out: ?int)
        method Background(apps: []string, wait: ?bool, timeout_ms: ?int, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        method Suspend(apps: []string, force: ?bool, wait: ?bool, timeout_ms: ?int, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        method Resume(apps: []string, wait: ?bool, timeout_ms: ?int, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        method Interrupt(apps: []string, end: ?bool, wait: ?bool, timeout_ms: ?int, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        method Kill(apps: []string, wait: ?bool, timeout_ms: ?int, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)

        # Keeps apps from being suspended by policies in the background, for for_ms or until the hold is ended; with
        # end, ends it. The reason is shown with the app; holds with the same reason are merged, and the later end
        # counts.
        method Hold(apps: []string, for_ms: ?int, reason: ?string, end: ?bool, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)

        # For apps with owner = "external": this machine owns them, for for_ms or until Disown; Own again renews that. An
        # app that was not owned goes to the state that a user last requested, or else as its launch says. With renew, an
        # app that is not owned is refused.
        method Own(apps: []string, for_ms: ?int, renew: ?bool, wait: ?bool, timeout_ms: ?int, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        # This machine does not own the apps: they are suspended, or terminated with stop.
        method Disown(apps: []string, stop: ?bool, wait: ?bool, timeout_ms: ?int, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)

        # Clears "failed" and the restart count.
        method Reset(apps: []string, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)

        # Replies when the apps are in the state.
        method Wait(apps: []string, state: string, timeout_ms: ?int) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)

        # Reloads the configuration; only what changed is touched. With diff nothing is changed, and the reply says what
        # would be. With restart, apps that run with old values are restarted; apps limits that, and what diff shows, to
        # some apps. A configuration without apps is refused while there are some, unless force is true. Replies once for
        # each step like the verbs, and finally with apps, supervisor (keys of [supervisor] and [policies] that changed)
        # and warnings.
        method Apply(diff: ?bool, restart: ?bool, force: ?bool, apps: ?[]string, wait: ?bool, timeout_ms: ?int) ->
          (
            app: ?string,
            state: ?string,
            transition: ?string,
            text: ?string,
            apps: ?[]Applied,
            supervisor: ?[]KeyChange,
            warnings: ?[]Diagnostic
          )

        # Sends a signal (SIGUSR1, USR1 or 10) to the main process of an app, or of each app that "app" names in the way
        # "apps" does. With a token, as for verbs, it is sent once. message names apps that get it only when they are
        # resumed.
        method Signal(app: string, signal: string, token: ?string) -> (message: ?string)

        # An app's output: its last lines (100, or with since all); with follow (and "more") new output too. Called with
        # "more", it comes in as many replies as it takes, each but the last of the past output with "more": true;
        # otherwise in one, with at most 100000 lines of the last 32 MiB, and at most 4 MiB of JSON (truncated: older
        # lines are left out because of these sizes). Each reply has a cursor: a call with it continues after that
        # reply's lines, with another instance and after rotations too. The cursor and the lines are empty while the
        # beginning of the output is still looked up. Fails with InJournal for an app with log = "journal".
        method Logs(app: string, lines: ?int, follow: ?bool, since: ?int, grep: ?string, cursor: ?string) ->
          (lines: []LogLine, cursor: string, more: bool, truncated: ?bool)

        # Past events, across restarts and boots; with follow (and "more") new ones too. "since", "until" (exclusive)
        # and "after" (a sequence number) limit them; of these the newest "limit" are returned. Called with "more", past
        # events may come in several replies, each of at most 4 MiB; otherwise in one, with the newest that fit. A reply's
        # sequence number is that of the newest event that it covers; "incomplete" says why older events are missing. "app" takes what "apps" takes.
        method Events(app: ?string, follow: ?bool, since: ?int, until: ?int, after: ?int, limit: ?int) ->
          (events: []Event, sequence: int, incomplete: ?string)

        # Termination reports, the newest first. "app" takes what "apps" takes. truncated: log, threads, timeline and
        # locks are empty, since the reply would be too long; left_out: how many reports are left out for that.
        method Reports(app: ?string) -> (reports: []Report, truncated: ?bool, left_out: ?int)

        # The state that an app saved, null if there is none, and its bytes from offset (0) on, at most 256 KiB of them, as
        # Base64. If saved_at or bytes changes between two calls, start again.
        method ExportState(app: string, offset: ?int) -> (saved_at: ?int, bytes: int, data: string)

        # Saves a state of at most 16 MiB for the next launch of an app that does not run, in parts of at most 256 KiB; the
        # part that completes it is answered when the state is durable. bytes is the size of the whole; with 0, the
        # state of the app is removed. offset 0 begins again. digest is the SHA-256 of the whole, in hexadecimal, for those who
        # call Owners: it is not checked.
        method ImportState(app: string, offset: int, bytes: int, data: string, digest: ?string) -> (bytes: int)

        # The apps with owner = "external". Called with "more", a reply follows with each that is owned, disowned or saves
        # its state, and one with all after the configuration has changed; whole says that a reply has all.
        method Owners() -> (apps: []Ownership, whole: bool)

        # The snapshot of an app, null if there is none, and its bytes from offset (0) on, at most 256 KiB of them, as
        # Base64. To read all of it, call again until it is complete, and start again if another snapshot has replaced
        # it.
        method Snapshot(app: string, offset: ?int) -> (snapshot: ?Snapshot, data: string)

        # The picture of an app, at most 256 KiB, as Base64; media_type is null if there is none; trouble says why if
        # one is configured. variant is a name in icons, such as "dark"; without one of that name it is the usual picture.
        method Icon(app: string, variant: ?string) -> (media_type: ?string, data: string, trouble: ?string)

        # What menus of a desktop need to know of each app, without templates and their scenes.
        method DesktopApps() -> (apps: []DesktopApp)

        # What this machine offers, what it lacks and what that costs.
        method Doctor() -> (checks: []Check)

        # The policies, in the order in which they are asked.
        method Policies() -> (policies: []Policy)

        # Reloads a policy's library, even if it is refused or quarantined. Nothing else is touched. Replies when it is
        # loaded or has failed to load.
        method ReloadPolicy(name: string) -> (policy: Policy)

        # The order in which the policies would evict apps if memory were short, the first one first.
        method EvictionOrder() -> (apps: []EvictionCandidate)

        # How much memory each app uses, and what would be done, step by step, if it were short.
        method Memory() -> (memory: MemoryStatus)

        # When timers wake apps, the earliest first; of all apps, or those that "apps" names.
        method Timers(apps: ?[]string) -> (timers: []Timer)

        # Records what policies are asked and shown from now on, and what becomes of their advice. Called with "more",
        # each reply has a line of the recording, the first one its header; without, there is only the header. Every
        # every_ms there is a line without events, with fresh measurements. The last reply, after for_ms, has no line. A
        # client that does not read is disconnected.
        method RecordPolicies(every_ms: ?int, for_ms: ?int) -> (line: ?object)

        """
}
