// SPDX-License-Identifier: Apache-2.0

/// The interface `io.torpor.Manager` in Varlink's own language, as `GetInterfaceDescription` gives it.
public enum ManagerInterface {
    /// The interface's name.
    public static let name = "io.torpor.Manager"

    /// The text of the interface (https://varlink.org/Interface-Definition).
    public static let description = """
        # Control of a Torpor supervisor and its apps.
        #
        # Times called "at" and "since" are microseconds since 1970; those called "_s" are seconds, "_ms" milliseconds.
        # "apps" takes exact names, globs (web@*), tag:NAME, and the name of an app with instances for all of them; at most
        # 64 that are no exact names. "app", of which there is one, takes an exact name, or that of an app with one
        # instance. Absent values are null.
        interface io.torpor.Manager

        # How an app's last run ended: reason as in the documentation, exit code or the name of the signal.
        type LastExit (reason: string, code: ?int, signal: ?string, at: ?int)

        # How many scenes an app has inside, and how many of them are connected, or about to be.
        type SceneCount (sessions: int, live: int)

        # One app, as "torpor list" shows it. One that is stranded is to run always, was evicted, and nothing launches it
        # again; one that is done is a oneshot that has done its work. socket_trouble says why a socket of it is not bound,
        # held_back why its launch waits. title is what people call it, titles the same by language (BCP 47, in lower
        # case), icon the file of its picture. Of a scene, template is what it is of, and scene its own name. picture_at is when the
        # picture was taken that is its snapshot, microseconds since 1970; null where there is none, or a text.
        # scenes is null for an app that has none inside.
        type App (
          name: string,
          state: string,
          transition: ?string,
          goal: string,
          pid: ?int,
          incarnation: ?int,
          uptime_s: ?float,
          restarts: int,
          failed: bool,
          memory_bytes: ?int,
          cpu_s: ?float,
          status: ?string,
          last_exit: ?LastExit,
          holds: []string,
          next_restart_ms: ?int,
          stranded: ?bool,
          done: ?bool,
          socket_trouble: ?string,
          held_back: ?string,
          tags: []string,
          title: ?string,
          titles: [string]string,
          icon: ?string,
          template: ?string,
          scene: ?string,
          picture_at: ?int,
          scenes: ?SceneCount
        )

        # One process of an app; state is the letter of /proc/PID/stat.
        type Process (pid: int, ppid: int, state: string, command: string, threads: int)

        # A deadline that runs; remaining_ms is null while its clock stands still.
        type Deadline (name: string, limit_ms: ?int, remaining_ms: ?int)

        # One line that an app wrote.
        type LogLine (at: ?int, incarnation: ?int, stream: ?string, text: string)

        # Where in systemd's journal the output of an app is: the SYSLOG_IDENTIFIER of its entries, and the units of the
        # supervisor, those of the apps first: entries of another supervisor's units are not the app's. user is the user
        # whose service manager has these units, null for the system's.
        type JournalPlace (identifier: string, units: []string, user: ?int)

        # A state archive of an app: its file, its size, and when it was saved in microseconds since 1970.
        type Archive (path: string, bytes: int, at: int)

        # What an app showed when it was in the background last: kind is png, jpeg, gif, webp or text, at when it was taken.
        type Snapshot (kind: string, bytes: int, at: int, incarnation: int)

        # A file lock that an app held: kind is flock, posix, ofd or lease, holder the process of the app that had it, waiter
        # a process outside the app that waited for it.
        type Lock (file: string, kind: string, holder: ?int, waiter: ?int)

        # Where a thread stood: what it waits for in the kernel, and the functions of the kernel and of the program,
        # innermost first. Null and empty is what cannot be read here.
        type ThreadStack (
          pid: ?int,
          tid: int,
          name: string,
          state: string,
          wait_channel: ?string,
          cpu_s: ?float,
          stack: []string,
          user_stack: []string
        )

        # A socket that is held for an app. kind is stream, datagram or seqpacket. waiting, of at most limit: connections that
        # nobody has accepted; of datagrams bytes of the kernel's memory. dropped: datagrams that found no room. trouble:
        # why it is not bound.
        type Socket (
          name: string,
          kind: string,
          address: string,
          waiting: ?int,
          limit: ?int,
          dropped: ?int,
          trouble: ?string
        )

        # How long the parts of a launch took, since it began: until its process was made, its program ran, it gave a sign
        # of life, it was told something, it was ready.
        type LaunchTimes (fork_ms: ?float, exec_ms: ?float, contact_ms: ?float, message_ms: ?float, ready_ms: ?float)

        # Something in the life of an incarnation, so long after its launch began. kind is launch (name: fork, exec,
        # contact, ready), state, transition, message, answer, failed-answer, pending-answer, missed (a deadline), signal
        # (one that was sent), task-begin, task-end, stopping (it said so), supervisor (another one took over), main (another
        # process is), exit, or gap (name: how many entries are left out; without a time).
        type TimelineEntry (after_s: ?float, kind: string, name: ?string)

        # Why an app ended when nobody had asked for it. With journal, its last output is there, and log is empty. due is
        # what was to come by the deadline: ready, heartbeat, tasks or the message to be answered; late_ms how long after
        # it that came (answered), or the app was gone. threads are as they were when it was about to be ended.
        type Report (
          app: string,
          incarnation: int,
          pid: ?int,
          at: int,
          reason: string,
          code: ?int,
          text: ?string,
          exit_code: ?int,
          signal: ?string,
          core_dumped: bool,
          stage: ?string,
          errno: ?int,
          deadline: ?string,
          due: ?string,
          deadline_ms: ?int,
          extended_ms: ?int,
          used_ms: ?int,
          late_ms: ?int,
          answered: bool,
          wall_s: ?float,
          cpu_s: ?float,
          state: string,
          transition: ?string,
          status: ?string,
          memory_bytes: ?int,
          max_memory_bytes: ?int,
          tasks: []string,
          locks: []Lock,
          log: []LogLine,
          journal: ?JournalPlace,
          threads: []ThreadStack,
          launch: ?LaunchTimes,
          timeline: []TimelineEntry
        )

        # Everything about one app: the fields of App, and more. mailbox: how many messages wait for it, unhandled: how many
        # nobody handled, transfers: how many are not over, data_folder: where its data folders are (data_folders = true),
        # unfit_settings: those whose values do not fit their declaration. With journal, its output is there, and log is empty.
        type AppStatus (
          name: string,
          state: string,
          transition: ?string,
          goal: string,
          pid: ?int,
          incarnation: ?int,
          uptime_s: ?float,
          restarts: int,
          failed: bool,
          memory_bytes: ?int,
          cpu_s: ?float,
          status: ?string,
          last_exit: ?LastExit,
          holds: []string,
          next_restart_ms: ?int,
          stranded: ?bool,
          done: ?bool,
          socket_trouble: ?string,
          held_back: ?string,
          tags: []string,
          title: ?string,
          titles: [string]string,
          icon: ?string,
          template: ?string,
          scene: ?string,
          picture_at: ?int,
          scenes: ?SceneCount,
          state_since: ?int,
          suspended_by: ?string,
          woken_by: []string,
          not_woken_by: []string,
          memory_limit: ?int,
          exec: []string,
          file: ?string,
          line: ?int,
          ready: ?string,
          requires: []string,
          after: []string,
          required_by: []string,
          watchdog_ms: ?int,
          force_quit: ?string,
          mailbox: int,
          unhandled: int,
          transfers: int,
          data_folder: ?string,
          unfit_settings: []string,
          deadlines: []Deadline,
          stopped: bool,
          traced: bool,
          outdated: bool,
          state_archive: ?Archive,
          state_set_aside: ?Archive,
          snapshot: ?Snapshot,
          sockets: []Socket,
          cgroup: ?string,
          profile: ?string,
          profile_done: []string,
          profile_missing: []string,
          processes: []Process,
          log: []LogLine,
          journal: ?JournalPlace,
          reports: []Report,
          launch: ?LaunchTimes
        )

        # Something that nobody handled, of the app that it was sent to first. why: unhandled (nobody in the chain of asked
        # handles it), crashed (it was told in that many attempts, which ended; incarnation: the last, which has a report),
        # unknown-message or unreadable.
        type UnhandledMail (
          id: int,
          app: string,
          topic: string,
          name: string,
          key: ?string,
          payload: ?object,
          sender: string,
          count: int,
          first_at: int,
          last_at: int,
          since: int,
          why: string,
          attempts: int,
          incarnation: ?int,
          asked: []string
        )

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

        # The data folders of an app, and what they take on the disk. configured: the configuration has it, with data_folders;
        # version: the one that came up last; complete: false where not all could be looked at.
        type DataFolders (
          app: string,
          path: string,
          configured: bool,
          version: ?string,
          documents_bytes: int,
          library_bytes: int,
          caches_bytes: int,
          tmp_bytes: int,
          complete: bool
        )

        # A setting of an app. type is string, integer, number, boolean, choice, duration, size, path or secret. value is as
        # programs get it (durations in seconds, sizes in bytes), text and default are as people write them; of a secret only
        # set is told. changed: when it was set or unset last. trouble: why what it is set to does not count.
        type Setting (
          key: string,
          type: string,
          set: bool,
          value: ?object,
          text: ?string,
          default: ?string,
          changed: ?int,
          title: ?string,
          titles: [string]string,
          help: ?string,
          helps: [string]string,
          choices: []string,
          restart: bool,
          identity: bool,
          writable: bool,
          trouble: ?string
        )

        # A scene of a template (an app with "scenes"): app is what it is called as an app, state that of the app, or unattached
        # where it has no process. opened_at: when first; used_at: when it had a process last; session: what it was opened
        # with; discarded_at: when it is discarded by itself; lacks_template: the configuration has none of that name;
        # processes: how many are in its cgroup ("scenes.cgroups"); frozen: whether they are frozen.
        type Scene (
          app: string,
          template: string,
          name: string,
          state: string,
          opened_at: int,
          used_at: int,
          session: ?object,
          discarded_at: ?int,
          lacks_template: bool,
          processes: ?int,
          frozen: ?bool
        )

        # A template, or an app with scenes inside: how many of them have a process or are connected, how many may, how many sessions there are, and may be.
        type SceneTemplate (
          name: string,
          live: int,
          max_live: ?int,
          sessions: int,
          max_sessions: int,
          inside: ?bool
        )

        # Something that happened, and why. "sequence" grows with every event, over instances and boots too.
        type Event (
          sequence: int,
          at: int,
          app: ?string,
          incarnation: ?int,
          kind: string,
          from: ?string,
          to: ?string,
          text: string,
          reason: ?string,
          details: ?object
        )

        # What a verb did to one app. When ok is false, message says why and what to do.
        type Result (app: string, ok: bool, state: string, pid: ?int, message: ?string, error: ?string)

        # Something that this machine offers or lacks; message says what the lack costs.
        type Check (name: string, ok: bool, value: ?string, message: ?string)

        # A policy: state is loading, ready, waiting (it failed and is loaded again in retry_ms), refused or quarantined (it
        # failed too often; it is loaded again in retry_ms, or where that is null by ReloadPolicy alone); stalls are late
        # answers while the machine stalled, which are no failures; the counts are of questions and of pieces of advice, the
        # times of its answers.
        type Policy (
          name: string,
          path: string,
          state: string,
          mode: string,
          isolation: string,
          confinement: []string,
          pid: ?int,
          version: ?string,
          summary: ?string,
          abi: ?int,
          questions: int,
          taken: int,
          idle: int,
          told: int,
          refused: int,
          damped: int,
          overruled: int,
          failures: int,
          stalls: int,
          restarts: int,
          median_us: ?float,
          p99_us: ?float,
          deadline_ms: int,
          retry_ms: ?int,
          asks_again_ms: ?int,
          last_failure: ?string
        )

        # An app that would be ended if memory were short, and why it stands where it does.
        type EvictionCandidate (app: string, state: string, memory_bytes: ?int, policy: string, reason: string)

        # The memory of the machine and of its apps. level is none, warning or critical; some_percent and full_percent are
        # the part of the last 10 s in which some, or all, tasks waited for memory; policy says in which order apps are
        # ended, where that is not the supervisor's own; trouble says why nothing is done about short memory.
        type MemoryStatus (
          level: string,
          trouble: ?string,
          total_bytes: int,
          available_bytes: int,
          swap_total_bytes: int,
          swap_free_bytes: int,
          some_percent: ?float,
          full_percent: ?float,
          policy: ?string,
          apps: []AppMemory,
          steps: []MemoryStep
        )

        # An app that runs. resident_bytes are its cgroup's, or its part of what processes share; ends_at_once: an eviction
        # ends it without notice now; protection says why it would not be ended.
        type AppMemory (
          app: string,
          state: string,
          resident_bytes: int,
          swapped_bytes: int,
          limit_bytes: ?int,
          priority: int,
          evict: string,
          ends_at_once: bool,
          protection: ?string
        )

        # What would be done: rung is tell, purge, page-out, evict, end-background, end-inactive or end-active.
        type MemoryStep (rung: string, apps: []string, bytes: ?int, why: string)

        # A timer of an app: when the configuration says that it comes, when it comes next and came last. kind is timer, or
        # fetch for the fetch mode, whose interval is what was learned; wake is background, foreground or none. blocked says
        # why it wakes nothing for now: stopped, force-quit or failed, until the app is started.
        type Timer (
          app: string,
          name: string,
          kind: string,
          when: string,
          next: ?int,
          last: ?int,
          wake: ?string,
          persistent: bool,
          blocked: ?string
        )

        # An app and those that it needs: those that it requires, and those that it is only launched after.
        type GraphNode (app: string, state: string, failed: bool, requires: []string, after: []string)

        # What a metric tells at one moment. name is that of its family in OpenMetrics, without _total; kind is counter,
        # gauge, histogram, info, stateset or summary; docs/metrics.md has them all.
        type Metric (name: string, kind: string, unit: ?string, help: string, samples: []MetricSample)

        # A value, told from others of the metric by its labels. Of a histogram, value is the sum of all values, count how
        # many there are, and buckets say how many were not above each bound.
        # Of a summary, quantiles say which value a part of all was not above.
        type MetricSample (
          labels: [string]string,
          value: float,
          count: ?int,
          buckets: ?[]MetricBucket,
          quantiles: ?[]MetricQuantile
        )

        type MetricBucket (le: float, count: int)

        type MetricQuantile (quantile: float, value: float)

        # A key of the configuration whose value is another one now. effect says when it counts: live (at once),
        # next-launch (it only matters then), restart (the app runs with the old value until it is launched again) or
        # supervisor-start.
        type KeyChange (key: string, old: ?string, new: ?string, effect: string)

        # What Apply did to an app, or would do; kind is added, removed, changed, or restarted (with what it requires).
        # message is for a line that begins with the app's name; when ok is false, it says why and what to do.
        type Applied (
          app: string,
          kind: string,
          changes: []KeyChange,
          ok: bool,
          state: ?string,
          pid: ?int,
          message: string,
          error: ?string
        )

        # Something that waits to be told to an app, or is being told (in_flight). name is the message of its delegate; count:
        # how many became one in it; wake: background or foreground, where the app is woken for it.
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

        # An app that opens something; by: why it fits, host, scheme, name or type.
        type Handler (app: string, by: string)

        # What is wrong in a configuration; severity is error or warning.
        type Diagnostic (
          file: string,
          line: int,
          column: int,
          path: string,
          message: string,
          severity: string
        )

        # All apps, sorted by name, or those that "apps" names. templates: those of scenes, where none is named.
        method List(apps: ?[]string) -> (apps: []App, templates: []SceneTemplate)

        # Everything about one app.
        method Status(app: string) -> (status: AppStatus)

        # Verbs. Called with "more" they reply once for each step of each app (app, state, transition, text),
        # and at last, without "continues", the results; called without, the results only.
        # wait = false answers as soon as the goal is set; timeout_ms bounds the waiting, not the goal.
        # token (up to 16 hexadecimal digits, chosen at random) names the request: when the connection is lost before
        # the reply, ask again with the same token, and what was carried out already is only waited for. Its lowest bit
        # does not count. Stop answers for the apps that were stopped because they require one of "apps", too.
        method Start(apps: []string, background: ?bool, wait: ?bool, timeout_ms: ?int, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        method Stop(apps: []string, wait: ?bool, timeout_ms: ?int, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        method Restart(apps: []string, wait: ?bool, timeout_ms: ?int, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        # url, one that the app shall open there, is for apps with a delegate.
        method Foreground(apps: []string, url: ?string, wait: ?bool, timeout_ms: ?int, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        # Has an app open a URL, or a file by its absolute path, whose media type is type: the one that fits best (a host of
        # url_hosts, then url_schemes, then opens), and of several the one that was used last; or app. Brings it to the
        # foreground, as Foreground does with a url, and replies when it has answered. One that it does not handle goes on
        # to the next that fits: the result is of that app then.
        method Open(
          url: ?string,
          file: ?string,
          type: ?string,
          app: ?string,
          wait: ?bool,
          timeout_ms: ?int,
          token: ?string
        ) -> (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        # The apps that open it, the one that Open chooses first.
        method Handlers(url: ?string, file: ?string, type: ?string) -> (handlers: []Handler)
        # Makes a scene of a template where there is none of that name, and brings it to the foreground, or, with background,
        # launches it there. session: an object of at most 4 KiB, which the scene is told at each launch; it is kept from the
        # first time on. Replies as Foreground does, for the scene's app. remote: for somebody outside who is about to connect
        # to its socket: launches nothing, and fails where the connection would not either.
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
        # Ends scenes that are in the background or suspended. What they are stays, until they are opened, or woken.
        method DisconnectScenes(apps: []string, wait: ?bool, timeout_ms: ?int, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        # Ends scenes as Stop does, and removes everything of them.
        method DiscardScenes(apps: []string, wait: ?bool, timeout_ms: ?int, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)
        # The templates, and the scenes of one of them, or of all.
        method Scenes(template: ?string) -> (templates: []SceneTemplate, scenes: []Scene)
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

        # Keeps apps in the background, not suspended by policies, for so long, or until it is ended; with end, that. The
        # reason is shown with the app; holds of one reason are one, until the later end.
        method Hold(apps: []string, for_ms: ?int, reason: ?string, end: ?bool, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)

        # Clears "failed" and the restart count.
        method Reset(apps: []string, token: ?string) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)

        # Replies when the apps are in that state.
        method Wait(apps: []string, state: string, timeout_ms: ?int) ->
          (app: ?string, state: ?string, transition: ?string, text: ?string, results: ?[]Result)

        # Reads the configuration again and goes by it; only what changed is touched. With diff nothing is changed, and
        # the reply says what would be. With restart what runs with old values is launched anew; apps limits that, and
        # what diff shows, to some apps. Replies once for each step like the verbs, and at last with apps, supervisor
        # (keys of [supervisor] and [policies] that changed) and warnings.
        method Apply(diff: ?bool, restart: ?bool, apps: ?[]string, wait: ?bool, timeout_ms: ?int) ->
          (
            app: ?string,
            state: ?string,
            transition: ?string,
            text: ?string,
            apps: ?[]Applied,
            supervisor: ?[]KeyChange,
            warnings: ?[]Diagnostic
          )

        # Sends a signal (SIGUSR1, USR1 or 10) to the main process of an app, or of each of those that "app" fits as one of
        # "apps" does. With a token, as for verbs, it is sent once. message names apps that get it only when they are
        # resumed.
        method Signal(app: string, signal: string, token: ?string) -> (message: ?string)

        # An app's output: of the last lines so many (100, or with since all); with follow (and "more") what comes from
        # now on as well. Called with "more", it comes in as many replies as it takes, each but the last of what there
        # was at the call with "more": true; else in one, with at most 100000 lines of the last 32 MiB. Each reply has a
        # cursor: given back, it goes on with the line after those of that reply, also with another instance and after
        # rotations. It is empty, and so are the lines, as long as the beginning of what was asked for is looked for.
        # Fails with InJournal for an app with log = "journal".
        method Logs(app: string, lines: ?int, follow: ?bool, since: ?int, grep: ?string, cursor: ?string) ->
          (lines: []LogLine, cursor: string, more: bool)

        # What happened, over restarts and boots; with follow (and "more") what happens from now on as well. Only what
        # is not before "since" and before "until", and behind the sequence number "after"; of that the newest "limit".
        # Called with "more", the past may come in several replies. A reply's sequence number is that of the newest
        # event that it looked at; "incomplete" says why older events are missing. "app" is as one of "apps".
        method Events(app: ?string, follow: ?bool, since: ?int, until: ?int, after: ?int, limit: ?int) ->
          (events: []Event, sequence: int, incomplete: ?string)

        # Termination reports, the newest first. "app" is as one of "apps".
        method Reports(app: ?string) -> (reports: []Report)

        # The snapshot of an app, null where there is none, and its bytes from offset (0) on, at most 256 KiB of them, as
        # Base64. Whoever wants all of it asks again until he has its bytes, and begins anew where another one has come.
        method Snapshot(app: string, offset: ?int) -> (snapshot: ?Snapshot, data: string)

        # The picture of an app, at most 256 KiB, as Base64; media_type is null where there is none, with trouble where one
        # is configured.
        method Icon(app: string) -> (media_type: ?string, data: string, trouble: ?string)

        # What this machine offers, what it lacks and what that costs.
        method Doctor() -> (checks: []Check)

        # The policies, in the order in which they are asked.
        method Policies() -> (policies: []Policy)

        # Opens a policy's library anew, also one that is refused or quarantined. Nothing else is touched. Replies when it
        # is loaded or is known not to be.
        method ReloadPolicy(name: string) -> (policy: Policy)

        # Whom the policies would end first if memory were short, the first one first.
        method EvictionOrder() -> (apps: []EvictionCandidate)

        # Who has how much memory, and what would be done, step by step, if it were short.
        method Memory() -> (memory: MemoryStatus)

        # When timers wake apps, what comes first before others; of all apps, or those that "apps" names.
        method Timers(apps: ?[]string) -> (timers: []Timer)

        # What policies are asked, what they are shown then, and what becomes of their advice, from now on: a recording.
        # Called with "more", each reply has a line of it, the first one its header; without, there is only that. Every
        # every_ms there is a line without events, with fresh measurements. The last reply, after for_ms, has no line. A
        # client that does not read is cut off.
        method RecordPolicies(every_ms: ?int, for_ms: ?int) -> (line: ?object)

        # Tells an app something about a topic, now or when it wakes; replies when that is on the disk. payload is anything
        # that JSON has. coalesce (all, latest, count, merge, net), and urgent, which wakes the app, are as the app's topics
        # say where they are not given. sender: whom it comes from. remote: pushed from outside, the app is told
        # didReceiveRemoteNotification, and woken only in the mode remote-notification. change is added, changed (one with what
        # waited, whose number id is), cancelled or repeated (by its token); outcome is told, woken, waits or held-back, the
        # last with a message.
        method Post(
          app: string,
          topic: string,
          payload: ?object,
          coalesce: ?string,
          key: ?string,
          urgent: ?bool,
          sender: ?string,
          remote: ?bool,
          token: ?string
        ) -> (id: ?int, change: string, outcome: string, message: ?string)

        # What waits to be told to an app, and how much may. With take, what is returned does not wait any more; with drop,
        # the numbers of mail, only that is returned and does not. What is being told stays.
        method Mailbox(app: string, take: ?bool, drop: ?[]int) ->
          (mail: []Mail, limit: int, bytes: int, bytes_limit: ?int)

        # What nobody handled, and what ended whoever was told it, the oldest first: of these apps, or of these numbers, or
        # all. With payload, what they say is there too.
        method Unhandled(apps: ?[]string, ids: ?[]int, payload: ?bool) -> (unhandled: []UnhandledMail)

        # Tells it again, as if it had just been posted, to the app that it was sent to or to another. It is no longer
        # among what nobody handled. The reply is that of Post, with the app that is told.
        method ReplayUnhandled(id: int, app: ?string) ->
          (app: string, id: ?int, change: string, outcome: string, message: ?string)

        # Keeps it no longer: all of these apps, or these numbers. Returns what was there.
        method DropUnhandled(apps: ?[]string, ids: ?[]int) -> (ids: []int)

        # The transfers of these apps, or of all, in the order in which they were asked for.
        method Transfers(apps: ?[]string, session: ?string) -> (transfers: []Transfer)

        # Cancels transfers that are not over: all of these apps, or these numbers. The apps are told of them as of any that
        # failed. Returns which.
        method CancelTransfers(apps: ?[]string, ids: ?[]int) -> (ids: []int)

        # The data folders of these apps, by exact names, or of all that have any, those included that have left the
        # configuration. It is looked at now, which may take a while.
        method Data(apps: ?[]string) -> (data: []DataFolders)

        # Removes what is in these data folders of an app (documents, library, caches, tmp), or, without folders, all of
        # them, so that its next launch is its first. It must not run. left: how many files could not be removed; message
        # says which and why.
        method PurgeData(app: string, folders: ?[]string) -> (app: string, removed: int, left: int, message: ?string)

        # The settings of an app, in the order of their declarations. For operators only.
        method Settings(app: string) -> (settings: []Setting)

        # Sets and unsets settings of an app, all or none. values: an object with a value for each, as people write it, or a
        # number, or true or false. Replies when it is on the disk and in the app's file; changed names those that are
        # otherwise than before, message says what follows.
        method SetSettings(app: string, values: ?object, unset: ?[]string) -> (changed: []string, message: ?string)

        # Which apps need which; all apps, sorted by name.
        method Graph() -> (apps: []GraphNode)

        # What this torpord has counted since it was started, and how the machine's memory and its own processes are. ‘torpor
        # metrics’ adds to it what follows from Describe, List and Policies.
        method Metrics() -> (metrics: []Metric)

        # Which torpord answers: its version, and how many its keeper has started, this one included; phase
        # is starting until what is launched at the start was launched, then running, in the end ending;
        # configuration_failure is there while the configuration on disk was not valid when it was read last. troubles
        # says what of events and of apps' output cannot be written at present.
        method Describe() -> (
          version: string,
          instance: int,
          pid: int,
          apps: int,
          phase: ?string,
          upgrade_failure: ?string,
          configuration_failure: ?string,
          troubles: []string
        )

        # Puts the programs on disk in charge, without touching any app. Answers before this torpord makes way; then
        # Describe tells of the next instance. When ok is false, nothing happens, and message says why.
        method Upgrade() -> (ok: bool, message: string)

        # There is no such app; nearest is a name that comes close.
        error UnknownApp (name: string, nearest: ?string)

        # The app takes nothing of the topic; message says what to do.
        error NotSubscribed (app: string, topic: string, message: string)

        # No app opens that; message says what to do.
        error NoHandler (url: string, message: string)

        # As much waits for the app as may; it is to be tried again later.
        error MailboxFull (app: string, message: string)

        # The caller may not do that; message says who may.
        error NotPermitted (message: string)

        # It failed; message says why and what to do.
        error Failed (message: string)

        # The supervisor does not have the app's output, since it is in the journal; message says how to read it.
        error InJournal (app: string, journal: JournalPlace, message: string)

        # The configuration on disk is invalid, and nothing was changed.
        error InvalidConfiguration (diagnostics: []Diagnostic)

        """

    /// The names of the interface's errors.
    public enum ErrorName {
        /// Parameters: `name`, `nearest`.
        public static let unknownApp = "io.torpor.Manager.UnknownApp"
        /// No app opens that.
        public static let noHandler = "io.torpor.Manager.NoHandler"
        /// Parameters: `app`, `topic`, `message`.
        public static let notSubscribed = "io.torpor.Manager.NotSubscribed"
        /// Parameters: `app`, `message`.
        public static let mailboxFull = "io.torpor.Manager.MailboxFull"
        /// Parameters: `message`.
        public static let notPermitted = "io.torpor.Manager.NotPermitted"
        /// Parameters: `message`.
        public static let failed = "io.torpor.Manager.Failed"
        /// Parameters: `app`, `journal`, `message`.
        public static let inJournal = "io.torpor.Manager.InJournal"
        /// Parameters: `diagnostics`.
        public static let invalidConfiguration = "io.torpor.Manager.InvalidConfiguration"
    }
}
