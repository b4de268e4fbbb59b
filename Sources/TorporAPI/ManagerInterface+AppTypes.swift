// SPDX-License-Identifier: Apache-2.0

extension ManagerInterface {
    /// The types that describe one app: what `List`, `Status` and `Reports` say of it.
    static let appTypes = """
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
        # again. done: it is a oneshot that has finished its work. working: it is one that does it now. socket_trouble
        # says why one of its sockets is not
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
          working: ?bool,
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
        # not fit their declaration. memory_counted: what counts for memory_limit, memory_counted_by how: "cgroup" (all
        # of its cgroup), "proportional" (shared pages count once), "resident". With journal, its output is there, and
        # log is empty.
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
          working: ?bool,
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
          memory_counted: ?int,
          memory_counted_by: ?string,
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

        """
}
