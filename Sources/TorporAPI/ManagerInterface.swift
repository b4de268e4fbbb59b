// SPDX-License-Identifier: Apache-2.0

/// The interface `io.torpor.Manager` in Varlink's own language, as the method `GetInterfaceDescription` returns it.
public enum ManagerInterface {
    /// The interface's name.
    public static let name = "io.torpor.Manager"

    /// The text of the interface (https://varlink.org/Interface-Definition).
    public static let description = """
        # Control of a Torpor supervisor and its apps.
        #
        # Times called "at" and "since" are microseconds since 1970; those called "_s" are seconds, "_ms" milliseconds.
        # "apps" takes exact names, globs (web@*), tag:NAME, and the name of an app with instances for all of them; at
        # most 64 of them may be other than exact names. "app" takes one exact name, or that of an app with one
        # instance. Absent values are null.
        interface io.torpor.Manager

        # An app for the menus of a desktop: categories are those of freedesktop.org's menus, url_schemes and opens as in
        # the configuration. oneshot: it does its work and ends, and is not for the foreground.
        type DesktopApp (
          name: string,
          title: ?string,
          titles: [string]string,
          summary: ?string,
          summaries: [string]string,
          icon: ?string,
          categories: []string,
          url_schemes: []string,
          opens: []string,
          oneshot: bool
        )

        # How an app's last run ended: the reason as in the documentation, and the exit code or the name of the signal.
        type LastExit (reason: string, code: ?int, signal: ?string, at: ?int)

        # How many scenes an app has inside, and how many of them are connected or connecting.
        type SceneCount (sessions: int, live: int)

        # Whether this machine owns an app of several machines: owner is that of App. saved: its saved state has changed, was
        # removed, or may have. imported: the digest of the state that was imported since this machine last owned the app, if
        # ImportState had one; what the app has saved since then follows from that state.
        type Ownership (app: string, owner: string, saved: bool, imported: ?string)

        # One app, as "torpor list" shows it. stranded: it should always run, but was evicted, and nothing launches it
        # again. done: it is a oneshot that has finished its work. socket_trouble says why one of its sockets is not
        # bound, unhealthy why its last health check failed or that it hangs, held_back why its launch waits. title is
        # the name that
        # people know it by, titles the same by language (BCP 47, in lower case), summary and summaries what it is for in
        # one line, icon the file of its picture, icons further ones by size in pixels and for a "dark" background,
        # categories where menus list it, language the locale that it gets as LANG. For a scene, template names its template, and scene is its own name. picture_at is when the picture in its snapshot
        # was taken, in microseconds since 1970; null without a snapshot, or if it is a text. scenes is null for an app
        # that has none inside. owner is null for an app that needs none, here if this machine owns it, for owned_ms or until
        # that is ended, forced if it runs all the same, and none. sandboxed: it may do
        # only what its permissions allow.
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
          unhealthy: ?string,
          held_back: ?string,
          tags: []string,
          title: ?string,
          titles: [string]string,
          summary: ?string,
          summaries: [string]string,
          icon: ?string,
          icons: [string]string,
          categories: []string,
          language: ?string,
          template: ?string,
          scene: ?string,
          picture_at: ?int,
          badge: ?int,
          owner: ?string,
          owned_ms: ?int,
          scenes: ?SceneCount,
          sandboxed: ?bool
        )

        # One process of an app; state is the letter of /proc/PID/stat.
        type Process (pid: int, ppid: int, state: string, command: string, threads: int)

        # A running deadline; remaining_ms is null while its clock is paused.
        type Deadline (name: string, limit_ms: ?int, remaining_ms: ?int)

        # A message that an app works on although no transition waits for the answer. message: its number in the mailbox;
        # attempt: in how many runs of the app it was delivered; working_ms: time in which the app ran; remaining_ms: null
        # without a limit, or if the answer is late.
        type Work (
          name: string,
          message: ?int,
          topic: ?string,
          attempt: ?int,
          working_ms: int,
          remaining_ms: ?int,
          late: bool
        )

        # One line of an app's output.
        type LogLine (at: ?int, incarnation: ?int, stream: ?string, text: string)

        # Where systemd's journal has the output of an app: the SYSLOG_IDENTIFIER of its entries, and the supervisor's
        # units, those of the apps first. Entries of another supervisor's units are not the app's. user is the user
        # whose service manager has these units, null for the system's. supervisor is the user that the supervisor runs
        # as, account the one that the app runs as (null: the same), and cgroup the end of the path of the app's cgroup:
        # entries of other processes are not the app's. All are null for a container.
        type JournalPlace (
          identifier: string,
          units: []string,
          user: ?int,
          supervisor: ?int,
          account: ?string,
          cgroup: ?string
        )

        # A state archive of an app: its file, its size, and when it was saved, in microseconds since 1970.
        type Archive (path: string, bytes: int, at: int)

        # What an app last showed in the background: kind is png, jpeg, gif, webp or text, at is when it was taken.
        type Snapshot (kind: string, bytes: int, at: int, incarnation: int)

        # A file lock that an app held: kind is flock, posix, ofd or lease, holder the process of the app that held it,
        # waiter a process outside the app that waited for it.
        type Lock (file: string, kind: string, holder: ?int, waiter: ?int)

        # Where a thread was: what it waited for in the kernel, and the functions of the kernel and of the program,
        # innermost first. What cannot be read is null or empty.
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

        # The container in which podman runs an app. digest is that of the image with which it was started.
        type Container (name: string, image: string, digest: ?string, ports: []string, networks: []string)

        # What a user is doing in an app. since: microseconds since 1970. state: it can only be continued with the state
        # that the app has saved.
        type Activity (
          app: string,
          type: string,
          title: string,
          since: int,
          url: ?string,
          state: bool,
          payload: ?object
        )

        # A service of an app that is announced on the local network: its name there, null if it is not announced, and
        # why it is not although it should be. while: running, awake or always.
        type Announcement (type: string, port: int, while: string, name: ?string, trouble: ?string)

        # A socket that is held for an app. kind is stream, datagram or seqpacket. waiting, of at most limit, is the
        # number of connections that were not accepted yet, or for datagrams their bytes in the kernel's memory.
        # dropped: datagrams for which there was no room. trouble: why it is not bound.
        type Socket (
          name: string,
          kind: string,
          address: string,
          waiting: ?int,
          limit: ?int,
          dropped: ?int,
          trouble: ?string
        )

        # When each step of a launch was reached, counted from its beginning: its process existed, its program ran, it
        # gave a sign of life, it got a message, it was ready.
        type LaunchTimes (fork_ms: ?float, exec_ms: ?float, contact_ms: ?float, message_ms: ?float, ready_ms: ?float)

        # An event in the life of an incarnation, and how long after the beginning of its launch it happened. kind is
        # launch (name: fork, exec, contact, ready), state, transition, message, answer, failed-answer, pending-answer,
        # missed (a deadline), signal (one that was sent), task-begin, task-end, stopping (the app said so), supervisor
        # (another one took over), main (the main process changed), exit, or gap (name: how many entries are left out;
        # without a time).
        type TimelineEntry (after_s: ?float, kind: string, name: ?string)

        # Why an app ended without being asked to. With journal, its last output is there, and log is empty. due is what
        # the deadline was for: ready, heartbeat, tasks or the message to answer; late_ms is how long after the deadline
        # that came (answered), or the app was gone. threads are those of the moment before it was terminated.
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

        # The protected data of an app: kind is complete or first-unlock, state unlocked, locking or locked, folder its
        # protected folder; encrypted: whether the kernel encrypts it, null if that is not known yet; message: why it
        # stays locked, or which files are still in use.
        type Protection (
          app: string,
          kind: string,
          state: string,
          folder: string,
          encrypted: ?bool,
          message: ?string
        )

        # The sandbox of an app: mode is true or agent; unenforced: what this machine does not enforce of it, a sentence
        # each; denials: how often it was denied something since torpord started, and what last, null if none was seen.
        type Sandbox (
          mode: string,
          permissions: []Permission,
          unenforced: []string,
          denials: ?int,
          last_denial: ?Denial
        )

        # What an app was denied, and when.
        type Denial (at: int, text: string)

        # What an app asks for, and why. state: allowed, denied, or asked (withheld until a person answers); purposes: by
        # language; ports: the TCP ports of network, empty for all; by and at: who answered, and when.
        type Permission (
          app: string,
          name: string,
          state: string,
          purpose: string,
          purposes: [string]string,
          ports: []int,
          by: ?string,
          at: ?int
        )

        # Everything about one app: the fields of App, and more. mailbox: how many messages are queued for it;
        # unhandled: how many were not handled; work: the message that it works on; transfers: how many are not over;
        # data_folder: where its data folders are (data_folders = true); bundle: the bundle that it comes from and its version; bundle_verified: "by the
        # kernel" or "at launch", null while it does not run; bundle_failed: the version in whose
        # place the one before was put back; unfit_settings: the settings whose values do
        # not fit their declaration. With journal, its output is there, and log is empty.
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
          unhealthy: ?string,
          held_back: ?string,
          tags: []string,
          title: ?string,
          titles: [string]string,
          summary: ?string,
          summaries: [string]string,
          icon: ?string,
          icons: [string]string,
          categories: []string,
          language: ?string,
          template: ?string,
          scene: ?string,
          picture_at: ?int,
          badge: ?int,
          owner: ?string,
          owned_ms: ?int,
          scenes: ?SceneCount,
          sandboxed: ?bool,
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
          work: ?Work,
          transfers: int,
          data_folder: ?string,
          bundle: ?string,
          bundle_verified: ?string,
          bundle_failed: ?string,
          unfit_settings: []string,
          deadlines: []Deadline,
          stopped: bool,
          traced: bool,
          outdated: bool,
          state_archive: ?Archive,
          state_set_aside: ?Archive,
          states_set_aside: []Archive,
          snapshot: ?Snapshot,
          sockets: []Socket,
          announcements: []Announcement,
          container: ?Container,
          sandbox: ?Sandbox,
          protection: ?Protection,
          health: ?string,
          health_known: bool,
          asleep_s: ?float,
          cpu_saved_s: ?float,
          paged_out: ?int,
          cgroup: ?string,
          profile: ?string,
          profile_done: []string,
          profile_missing: []string,
          processes: []Process,
          processes_left_out: ?int,
          log: []LogLine,
          journal: ?JournalPlace,
          reports: []Report,
          launch: ?LaunchTimes
        )

        # A message that no app handled; app is the one that it was sent to first. why: unhandled (no app in asked
        # handles it), crashed (that many attempts to deliver it ended with the app; incarnation: the last, which has a
        # report), unknown-message or unreadable.
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

        # An alert for people. state: scheduled, or open, which means that it came and was not answered. at: when it
        # comes next, or for when it was scheduled; opened_at: when an open one came; held_until: the end of the quiet
        # hours that it waits for, or will wait for when it is due; all in microseconds since 1970. calendar: of a
        # repeated one. Each time a repeated alert comes, it has a number of its own. permission: what the app asks people
        # for by it, with the actions allow and deny; null for every other alert.
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

        # The data folders of an app, and their sizes on the disk. configured: whether the configuration has the app,
        # with data_folders; version: the last version that came up; complete: false if some files could not be
        # inspected.
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

        # A setting of an app. type is string, integer, number, boolean, choice, duration, size, path or secret. value
        # is the form for programs (durations in seconds, sizes in bytes), text and default the form for people; a
        # secret shows only set. changed: when it was last set or unset. trouble: why its value is not used.
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

        # A scene of a template (an app with "scenes"). app is its name as an app; state that of the app, or unattached
        # if it has no process. opened_at: when it was first opened; used_at: when it last had a process; session: what
        # it was opened with; discarded_at: when it will be discarded automatically; lacks_template: the configuration
        # no longer has its template; processes: how many are in its cgroup ("scenes.cgroups"); frozen: whether they are
        # frozen.
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

        # A template, or an app with scenes inside: how many scenes have a process or are connected, and how many may
        # (max_live); how many sessions exist, and how many may (max_sessions).
        type SceneTemplate (
          name: string,
          live: int,
          max_live: ?int,
          sessions: int,
          max_sessions: int,
          inside: ?bool
        )

        # An event, and why it happened. "sequence" grows with every event, across instances and boots too.
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

        # What a verb did to one app. When ok is false, message says why and what to do. never_woken is whether no event
        # wakes the app; null if it is not suspended. If none does, required_by are the apps whose use brings it back.
        type Result (
          app: string,
          ok: bool,
          state: string,
          pid: ?int,
          message: ?string,
          error: ?string,
          never_woken: ?bool,
          required_by: ?[]string
        )

        # What this machine offers or lacks; message says what the lack costs.
        type Check (name: string, ok: bool, value: ?string, message: ?string)

        # A policy. state is loading, ready, waiting (it failed and is reloaded in retry_ms), refused or quarantined (it
        # failed too often, and is reloaded in retry_ms, or if that is null only by ReloadPolicy). stalls are late
        # answers while the machine stalled, which do not count as failures. The counts are of questions and of pieces
        # of advice, the times those of its answers.
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

        # An app that would be evicted if memory were short, and the reason for its place in the order.
        type EvictionCandidate (app: string, state: string, memory_bytes: ?int, policy: string, reason: string)

        # The memory of the machine and of its apps. level is none, warning or critical; some_percent and full_percent
        # are the share of the last 10 s in which some tasks, or all, waited for memory; policy is the one that orders
        # evictions, null for the supervisor's own order; trouble says why nothing is done about short memory.
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

        # A running app. resident_bytes are its cgroup's, or its part of what processes share; ends_at_once: an eviction
        # would end it without notice now; protection says why it would not be evicted.
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

        # A step that would be taken: rung is tell, purge, page-out, evict, end-background, end-inactive or end-active.
        type MemoryStep (rung: string, apps: []string, bytes: ?int, why: string)

        # A timer of an app: when it fires by the configuration, when next, and when last. kind is timer, or fetch for
        # the fetch mode, whose interval is learned; wake is background, foreground or none. blocked says why it wakes
        # nothing now: stopped, force-quit or failed, until the app is started.
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

        # An app and its dependencies: those that it requires, and those that it is only launched after.
        type GraphNode (app: string, state: string, failed: bool, requires: []string, after: []string)

        # The values of a metric at one moment. name is that of its family in OpenMetrics, without _total; kind is
        # counter, gauge, histogram, info, stateset or summary; docs/metrics.md lists them all.
        type Metric (name: string, kind: string, unit: ?string, help: string, samples: []MetricSample)

        # A value of a metric, identified by its labels. For a histogram, value is the sum of all values, count their
        # number, and each bucket counts the values up to its bound. For a summary, each quantile is the value that this
        # part of all values does not exceed.
        type MetricSample (
          labels: [string]string,
          value: float,
          count: ?int,
          buckets: ?[]MetricBucket,
          quantiles: ?[]MetricQuantile
        )

        type MetricBucket (le: float, count: int)

        type MetricQuantile (quantile: float, value: float)

        # A key of the configuration whose value has changed. effect says when the new value takes effect: live (at
        # once), next-launch (it matters only then), restart (the app runs with the old value until it is launched
        # again) or supervisor-start.
        type KeyChange (key: string, old: ?string, new: ?string, effect: string)

        # What Apply did to an app, or would do; kind is added, removed, changed, or restarted (with what it requires).
        # message continues a line that begins with the app's name; when ok is false, it says why and what to do.
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

        # A message that waits in an app's mailbox, or is being delivered (in_flight). name is the message of its
        # delegate; count: how many messages were merged into it; wake: background or foreground if it wakes the app;
        # attempts: in how many runs of the app it was delivered and not answered, including the present one.
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

        # An app that opens something; by says why it fits: host, scheme, name or type.
        type Handler (app: string, by: string)

        # A problem in a configuration; severity is error or warning.
        type Diagnostic (
          file: string,
          line: int,
          column: int,
          path: string,
          message: string,
          severity: string
        )

        # All apps, sorted by name, or those that "apps" names. templates: the templates of scenes, if "apps" is
        # absent or empty.
        method List(apps: ?[]string) -> (apps: []App, templates: []SceneTemplate)

        # Everything about one app.
        method Status(app: string) -> (status: AppStatus)

        # Verbs. Called with "more" they reply once for each step of each app (app, state, transition, text), and
        # finally, without "continues", with the results; without "more", with the results only. wait = false replies as
        # soon as the goal is set; timeout_ms limits the waiting, not the goal. token (up to 16 hexadecimal digits,
        # chosen at random) names the request: if the connection is lost before the reply, repeat the call with the same
        # token; what was already carried out is not repeated but only waited for. Its lowest bit does not count. The
        # results of Stop include the apps that were stopped because they require one of "apps".
        # force, for Start: launch the app even if a policy is against it, or this machine does not own it. standby: launch
        # it only to be suspended. keep_state, for Stop and Restart: the next launch gets the state that the app saved.
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
        method Stop(apps: []string, keep_state: ?bool, wait: ?bool, timeout_ms: ?int, token: ?string) ->
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
        # otherwise in one, with at most 100000 lines of the last 32 MiB. Each reply has a cursor: a call with it
        # continues after that reply's lines, with another instance and after rotations too. The cursor and the lines
        # are empty while the beginning of the output is still looked up. Fails with InJournal for an app with log =
        # "journal".
        method Logs(app: string, lines: ?int, follow: ?bool, since: ?int, grep: ?string, cursor: ?string) ->
          (lines: []LogLine, cursor: string, more: bool)

        # Past events, across restarts and boots; with follow (and "more") new ones too. "since", "until" (exclusive)
        # and "after" (a sequence number) limit them; of these the newest "limit" are returned. Called with "more", past
        # events may come in several replies. A reply's sequence number is that of the newest event that it covers;
        # "incomplete" says why older events are missing. "app" takes what "apps" takes.
        method Events(app: ?string, follow: ?bool, since: ?int, until: ?int, after: ?int, limit: ?int) ->
          (events: []Event, sequence: int, incomplete: ?string)

        # Termination reports, the newest first. "app" takes what "apps" takes.
        method Reports(app: ?string) -> (reports: []Report)

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
        # unhandled: how many messages to the app are no longer delivered (see Unhandled).
        method Mailbox(app: string, take: ?bool, drop: ?[]int) ->
          (mail: []Mail, limit: int, bytes: int, bytes_limit: ?int, unhandled: ?int)

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

        # The app does not exist; nearest is a similar name.
        error UnknownApp (name: string, nearest: ?string)

        # The app accepts no messages of the topic; message says what to do.
        error NotSubscribed (app: string, topic: string, message: string)

        # No app opens that; message says what to do.
        error NoHandler (url: string, message: string)

        # The app's mailbox is full; try again later.
        error MailboxFull (app: string, message: string)

        # The app is one of several machines, and this one does not own it.
        error NotOwned (app: string, message: string)

        # The caller must not do that; message says who may.
        error NotPermitted (message: string)

        # The call failed; message says why and what to do.
        error Failed (message: string)

        # The supervisor does not have the app's output, because it is in the journal; message says how to read it.
        error InJournal (app: string, journal: JournalPlace, message: string)

        # The configuration on disk is invalid, and nothing was changed.
        error InvalidConfiguration (diagnostics: []Diagnostic)

        """

    /// The names of the interface's errors.
    public enum ErrorName {
        /// There is no app of that name. Parameters: `name`, and `nearest`, an existing app with a similar name.
        public static let unknownApp = "io.torpor.Manager.UnknownApp"
        /// No app opens the URL or file.
        public static let noHandler = "io.torpor.Manager.NoHandler"
        /// The app does not accept the topic. Parameters: `app`, `topic`, `message`.
        public static let notSubscribed = "io.torpor.Manager.NotSubscribed"
        /// The app's mailbox is full. Parameters: `app`, `message`.
        public static let mailboxFull = "io.torpor.Manager.MailboxFull"
        /// This machine does not own the app. Parameters: `app`, `message`.
        public static let notOwned = "io.torpor.Manager.NotOwned"
        /// The user may not make the request. Parameters: `message`.
        public static let notPermitted = "io.torpor.Manager.NotPermitted"
        /// The request failed for another reason. Parameters: `message`.
        public static let failed = "io.torpor.Manager.Failed"
        /// The app's output is in systemd's journal, not in a log of torpord. Parameters: `app`, `journal`, `message`.
        public static let inJournal = "io.torpor.Manager.InJournal"
        /// The configuration is not valid. Parameters: `diagnostics`.
        public static let invalidConfiguration = "io.torpor.Manager.InvalidConfiguration"
    }
}
