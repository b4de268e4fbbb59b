// SPDX-License-Identifier: Apache-2.0

extension ManagerInterface {
    /// The types of what apps hand to the supervisor, such as messages and transfers, and of what the supervisor says of
    /// events, of the machine and of itself.
    static let reportTypes = """
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

        """
}
