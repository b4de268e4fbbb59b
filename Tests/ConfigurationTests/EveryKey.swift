// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Linux
import Mailbox
import Permissions
import Testing
import TransferProtocol

@testable import Configuration

extension LoaderTests {
    /// A value for each key of an app that is not its default, and nothing else.
    static let everything: [String: String] = [
        "accepts_from": "[\"b\", \"tag:t\"]",
        "settings": "{ port = { type = \"integer\", default = 80, max = 90, title = \"Port\", restart = true } }",
        "settings_format": "\"env\"",
        "mailbox_limit": "7", "mailbox_size": "\"none\"", "mail_attempts": "7",
        "topics":
            "{ news = \"latest\", \"s/*\" = { coalesce = \"net\", urgent = true, wake = \"none\", keep = true, next = [\"b\"] }, "
            + "feed = { refresh = true } }",
        "wake_storm": "{ limit = 5, window = \"1min\", hold = \"2min\", action = \"end\" }",
        "activities": "[\"org.example.note\"]",
        "may_open": "[\"Notes\", \"*\"]", "open_command": "[\"/bin/o\", \"%u\"]", "opens": "[\"Text/Plain\", \"*.md\"]",
        "url_hosts": "[\"Notes.example.org\"]", "url_schemes": "[\"notes\", \"Notes\", \"x+y\"]",
        "after": "[\"b\"]", "after_stop": "[\"/bin/log\", \"x\"]", "answers": "true",
        "on_failure": "[[\"/bin/tell\"], { command = [\"/bin/c\"], deadline = \"9s\", each = true }]",
        "answer_time": "\"none\"", "background_deadline": "\"6s\"",
        "background_modes": "[\"voip\", \"location\", \"bluetooth-central\", \"voip\"]",
        "background_time": "\"none\"", "before_first_unlock": "\"none\"",
        "before_start": "[[\"/bin/a\"], { command = [\"/bin/b\"], deadline = \"none\" }]",
        "bluetooth": """
        [{ device = "aa:bb:cc:dd:ee:ff", on = ["disconnect"] }, { name = "heart", service = "180d", \
        characteristic = "00002A37-0000-1000-8000-00805f9b34fb", wake = "foreground" }]
        """,
        "bundle": "\"notes\"",
        "container": """
        { image = "docker.io/library/nginx:1.27", name = "n-%i", pull = "newer", pull_timeout = "none", \
        entrypoint = ["/bin/e"], directory = "/d", user = "1:2", ports = ["127.0.0.1:80:80", "[::1]:1-2:1-2/udp", "5"], \
        volumes = ["v:/v", "/a:/b:ro", "/c"], networks = ["one", "two:ip=10.0.0.2"], env_file = ["e"], read_only = true, \
        tmpfs = ["/tmp:size=1m"], devices = ["/dev/null"], cap_add = ["NET_RAW"], cap_drop = ["all"], \
        security = ["no-new-privileges"], shm_size = "1MiB", hostname = "h", labels = { a = "b" }, secrets = ["s"], \
        health = { command = ["/h"], interval = "1min", timeout = "1s", failures = 2 }, args = ["--init"] }
        """,
        "protected": "\"complete\"", "protected_fallback": "\"permissions\"", "launch_when_locked": "true",
        "data_folders": "true", "first_launch": "\"initial\"", "version": "\"1:2.0~rc1\"",
        "directory": "\"data/../x\"",
        "devices": """
        [{ on = ["remove", "data"], subsystem = "tty", type = "t", node = "/dev/tty*", properties = { A = "1*" }, \
        wake = "none" }, { name = "n", node = "ports/a" }]
        """,
        "environment": "{ A = \"1\" }", "environment_file": "[\"-e\", \"/f\"]", "event_time": "\"1min\"",
        "evict": "\"kill\"", "exec": "[\"/bin/a\", \"\"]", "exits_on_suspend": "true", "expiry_warning": "\"1s\"",
        "fetch_interval": "\"1h\"",
        "extension_limit": "\"2min\"", "grace": "\"0s\"", "group": "\"video\"", "identity_files": "[\"who\"]",
        "instances": "2", "instance_first": "0",
        "sandbox": "true", "on_denied": "\"end\"",
        "scenes":
            "{ inside = false, cgroups = false, max_live = 2, max_sessions = 3, discard_after = \"30d\", "
            + "opened_by = \"posters\" }",
        "health": "{ tcp = \"[::1]:80\", interval = \"7s\", timeout = \"4s\", failures = 5 }",
        "keep_alive": "\"20min\"", "kill_mode": "\"main\"", "last_resort": "true",
        "launch": "\"on-demand\"", "launch_deadline": "\"none\"",
        "limits": "{ nofile = 4096, core = \"0:1GiB\", as = \"unlimited\", rttime = \"5ms\", tasks = 512 }",
        "location": "{ updates = \"significant\", distance = 20.5, interval = \"1min\", wake = \"none\" }",
        "log": "\"null\"",
        "log_max_age": "\"7d\"", "log_max_files": "0", "log_max_size": "\"none\"", "memory_limit": "\"64MiB\"",
        "announce":
            "[{ type = \"_http._tcp\", name = \"n\", port = 80, txt = { path = \"/\", a = \"b\" }, while = \"awake\" }]",
        "networks":
            "[{ name = \"home\", interface = \"w*\", ssid = \"h\", metered = false, vpn = false, on = \"enter\", wake = \"none\" }]",
        "memory_needed": "\"1MB\"", "message_deadline": "\"9s\"", "nice": "-5", "notifications": "[\"battery\"]",
        "notify_access": "\"main\"",
        "on_lock": "\"ignore\"", "gpu_background": "\"end\"",
        "on_missed_transition": "\"end\"", "owner": "\"external\"", "page_out_after": "\"1h30m\"",
        "paths": """
        [{ exists = "/x/*" }, { name = "in", not_empty = "in", wake = "foreground" }, { changed = "/c", rerun = true }, \
        { modified = "/m" }]
        """,
        "permissions":
            "{ \"files:/srv//m/:ro\" = { purpose = { default = \"Shows\", de = \"Zeigt\" } }, "
            + "network = { purpose = \"Asks\", default = \"allow\", ports = [443, 80, 443] } }",
        "priority": "-7",
        "purgeable": "[\"cache/a\", \"/dev/shm/c\"]",
        "ready": "{ http = \"http://[::1]:80/h?x\", interval = \"1s\", timeout = \"3s\" }", "requires": "[\"c\"]",
        "regions": """
        [{ name = "home", latitude = 52.5, longitude = -13, radius = 200, on = "leave", settle = "5s", \
        wake = "foreground" }]
        """,
        "resources": """
        { background = { cpu_weight = 2, io_weight = 3, oom_score_adj = 4, timer_slack = "5us", cpu_max = "12.5%", \
        memory_high = "32MiB", memory_low = "1MiB" } }
        """,
        "restart": "\"always\"",
        "restart_backoff":
            "{ initial = \"1s\", factor = 3, cap = \"2s\", limit = 4, window = \"5s\", jitter = 0.5 }",
        "settings_files": "[\"s.conf\", \"/e/*.conf\"]", "shared_resources": "[\"/l\"]",
        "signals": "{ didEnterBackground = \"USR1\" }", "stable_after": "\"1s\"",
        "snapshot": "{ http = \"http://[::1]:8080/s?x\", deadline = \"2s\" }",
        "sockets": """
        [{ stream = "[::1]:80", name = "web", reuse_port = true, backlog = 7, no_delay = true, \
        holding = "snapshot", holding_after = "1s", wake = "foreground" }, \
        { datagram = "53", reuse_port = true, receive_buffer = "1MiB" }]
        """,
        "state_limit": "\"none\"", "stderr": "\"e.log\"", "stdin": "\"/in\"", "stop_signal": "\"SIGINT\"",
        "success_exit_status": "[3, \"SIGHUP\"]",
        "supplementary_groups": "[\"44\"]", "suspend_deadline": "\"3s\"", "suspend_with": "\"freezer\"",
        "tags": "[\"t\"]", "title": "{ default = \"T\", pt_BR = \"U\" }",
        "icon": "{ default = \"i.svg\", \"64\" = \"i.png\", dark = \"/d.svg\" }",
        "summary": "{ default = \"S\", de = \"Z\" }", "categories": "[\"Utility\", \"X-Own\"]",
        "language": "\"de_DE.UTF-8@euro\"",
        "launch_image": "\"l.png\"",
        "cover": "[\"/bin/c\", \"%f\"]", "cover_after": "\"1s\"", "task_budget": "\"1h\"",
        "subscriptions": """
        [{ name = "news", url = "https://example.org/feed.xml", every = "2h" }, \
        { name = "b", url = "http://b.example" }]
        """,
        "task_time": "\"20s\"",
        "timers": """
        [{ calendar = ["Mon..Fri 8:00", "daily"], accuracy = "1s", random_delay = "2s", persistent = true }, \
        { name = "often", every = "1h", after_boot = "5min", after_start = "1min", wake = "none", payload = { a = 1 } }]
        """,
        "transfers": """
        { allow = ["https://*.example.org/pub/*"], limit = 7, size_limit = "none", resource_time = "1d", \
        window = "23:00-05:30", metered = true, authorities = { "Files.example.org" = "ca.pem" } }
        """,
        "transition_deadline": "\"7s\"",
        "type": "\"oneshot\"", "umask": "\"0027\"", "user": "\"web\"", "wake_after_force_quit": "[]",
        "wake_on_connect": "\"foreground\"",
        "suspended_connections": "\"close\"",
        "watchdog": "\"10s\"", "watchdog_signal": "\"SIGQUIT\"",
    ]

    private static let container: ContainerSpecification = {
        var container = ContainerSpecification()
        container.image = "docker.io/library/nginx:1.27"
        container.name = "n-%i"
        (container.pull, container.pullTimeout) = (.newer, nil)
        (container.entrypoint, container.directory, container.user) = (["/bin/e"], "/d", "1:2")
        container.ports = ["127.0.0.1:80:80", "[::1]:1-2:1-2/udp", "5"]
        container.volumes = ["v:/v", "/a:/b:ro", "/c"]
        container.networks = ["one", "two:ip=10.0.0.2"]
        container.environmentFiles = ["/etc/torpor/e"]
        (container.isReadOnly, container.temporary, container.devices) = (true, ["/tmp:size=1m"], ["/dev/null"])
        (container.addedCapabilities, container.droppedCapabilities) = (["NET_RAW"], ["all"])
        (container.security, container.sharedMemory, container.hostname) = (["no-new-privileges"], 1 << 20, "h")
        (container.labels, container.secrets, container.arguments) = (["a": "b"], ["s"], ["--init"])
        var health = HealthSpecification(.inside(["/h"]))
        (health.probe.interval, health.probe.timeout, health.failures) = (.seconds(60), .seconds(1), 2)
        container.health = health
        container.isReadyByHealth = false
        container.hasImagesStopSignal = false
        container.isImageWritten = true
        return container
    }()

    /// What stands in `everything`, in terms of the types.
    static func expected() -> AppSpecification {
        var app = AppSpecification(name: "a")
        var rules = AppRules()
        app.bundle = BundleReference(name: "notes", folder: "/var/lib/torpor/bundles/notes")
        app.container = container
        app.acceptsFrom = ["b", "tag:t"]
        var media = PermissionDeclaration(.files(path: "/srv/m", isReadOnly: true), purpose: "Shows")
        media.purposes = ["de": "Zeigt"]
        var network = PermissionDeclaration(.network, purpose: "Asks")
        (network.initial, network.ports) = (.allow, [80, 443])
        app.sandbox.declarations = [media, network]
        app.sandbox.onDenied = .end
        var port = SettingDeclaration("port", .integer(min: .min, max: 90))
        (port.defaultValue, port.title, port.restart) = ("80", "Port", true)
        app.declaredSettings = [port]
        app.settingsFormat = .env
        app.mailboxLimit = 7
        app.mailboxSize = nil
        app.mailAttempts = 7
        app.topics = ["news": TopicRule(), "s/*": TopicRule()]
        app.topics["news"]?.coalesce = .latest
        app.topics["s/*"]?.coalesce = .net
        app.topics["s/*"]?.urgent = true
        app.topics["s/*"]?.wake = .none
        app.topics["s/*"]?.keep = true
        app.topics["s/*"]?.next = ["b"]
        app.topics["feed"] = TopicRule()
        app.topics["feed"]?.refresh = true
        app.opening.activities = ["org.example.note"]
        app.opening.mayOpen = ["notes", "*"]
        app.opening.command = ["/bin/o", "%u"]
        app.opening.files = ["text/plain", "*.md"]
        app.opening.hosts = ["notes.example.org"]
        app.opening.schemes = ["notes", "x+y"]
        var news = SubscriptionSpecification()
        (news.name, news.url, news.every) = ("news", "https://example.org/feed.xml", .seconds(7_200))
        var other = SubscriptionSpecification()
        (other.name, other.url) = ("b", "http://b.example")
        app.subscriptions = [news, other]
        app.transfers.allow = [WebPattern("https://*.example.org/pub/*")!]
        app.transfers.limit = 7
        app.transfers.sizeLimit = nil
        app.transfers.resourceTime = .seconds(86_400)
        app.transfers.window = DailyWindow("23:00-05:30")
        app.transfers.usesMeteredLinks = true
        app.transfers.authorities = ["files.example.org": "/etc/torpor/ca.pem"]
        app.wakeStorm.limit = 5
        app.wakeStorm.window = .seconds(60)
        app.wakeStorm.hold = .seconds(120)
        app.wakeStorm.ends = true
        app.after = ["b"]
        app.afterStop = [HookCommand(["/bin/log", "x"])]
        app.onFailure = [FailureCommand(["/bin/tell"]), FailureCommand(["/bin/c"])]
        app.onFailure[1].deadline = .seconds(9)
        app.onFailure[1].each = true
        app.answerTime = nil
        rules.answeredMessages = [.didEnterBackground]
        rules.backgroundDeadline = .seconds(6)
        app.backgroundModes = [.bluetoothCentral, .location, .voip]
        var trigger = BluetoothTrigger()
        (trigger.name, trigger.device) = ("AA:BB:CC:DD:EE:FF", "AA:BB:CC:DD:EE:FF")
        trigger.occasions = [.disconnect]
        var heart = BluetoothTrigger()
        heart.name = "heart"
        heart.service = "0000180d-0000-1000-8000-00805f9b34fb"
        heart.characteristic = "00002a37-0000-1000-8000-00805f9b34fb"
        heart.occasions = [.notify]
        heart.wake = .foreground
        app.bluetooth = [trigger, heart]
        rules.backgroundTime = nil
        app.beforeFirstUnlock = .none
        var hook = HookCommand(["/bin/b"])
        hook.deadline = nil
        app.beforeStart = [HookCommand(["/bin/a"]), hook]
        app.devices = [DeviceTrigger(name: "/dev/tty*"), DeviceTrigger(name: "n")]
        app.devices[0].on = [.remove, .data]
        app.devices[0].subsystem = "tty"
        app.devices[0].type = "t"
        app.devices[0].node = "/dev/tty*"
        app.devices[0].properties = ["A": "1*"]
        app.devices[0].wake = .none
        app.devices[1].node = "/etc/torpor/ports/a"
        app.data.isWanted = true
        app.data.protection.fallback = .permissions
        app.data.protection.launchesWhenLocked = true
        app.data.firstLaunch = "/etc/torpor/initial"
        app.data.version = "1:2.0~rc1"
        app.directory = "/etc/torpor/x"
        app.environment = ["A": "1"]
        app.environmentFiles = [
            EnvironmentFileReference(path: "/etc/torpor/e", isOptional: true),
            EnvironmentFileReference(path: "/f", isOptional: false),
        ]
        rules.eventTime = .seconds(60)
        rules.eviction = .kill
        rules.owner = .external
        app.exec = ["/bin/a", ""]
        rules.exitsOnSuspend = true
        rules.expiryWarning = .seconds(1)
        rules.extensionLimit = .seconds(120)
        rules.grace = .zero
        app.group = "video"
        app.identityFiles = ["/etc/torpor/who"]
        app.keepAlive = .seconds(1_200)
        app.killMode = .main
        app.lastResort = true
        app.launch = .onDemand
        rules.launchDeadline = nil
        app.limits = [
            ResourceLimit(name: "as", resource: 9, soft: .max, hard: .max),
            ResourceLimit(name: "core", resource: 4, soft: 0, hard: 1 << 30),
            ResourceLimit(name: "nofile", resource: 7, soft: 4_096, hard: 4_096),
            ResourceLimit(name: "rttime", resource: 15, soft: 5_000, hard: 5_000),
            ResourceLimit(name: "tasks", resource: ResourceLimit.tasks, soft: 512, hard: 512),
        ]
        app.location.updates = .significant
        app.location.distance = 20.5
        app.location.interval = .seconds(60)
        app.location.wake = WakeManner.none
        var region = RegionSpecification()
        (region.name, region.latitude, region.longitude, region.radius) = ("home", 52.5, -13, 200)
        (region.crossing, region.settle, region.wake) = (.leave, .seconds(5), .foreground)
        app.location.regions = [region]
        var joined = NetworkSpecification()
        (joined.name, joined.interface, joined.ssid) = ("home", "w*", "h")
        (joined.metered, joined.vpn, joined.crossing, joined.wake) = (false, false, .enter, WakeManner.none)
        app.location.networks = [joined]
        app.log = .null
        app.logMaxAge = .seconds(7 * 86_400)
        app.logMaxFiles = 0
        app.logMaxSize = nil
        app.memoryLimit = 64 << 20
        app.memoryNeeded = 1_000_000
        app.nice = -5
        app.notifications = [.battery]
        app.notifyAccess = .main
        rules.onLock = .ignore
        app.gpuBackground = .end
        var announcement = AnnouncementSpecification()
        (announcement.type, announcement.name, announcement.port) = ("_http._tcp", "n", 80)
        (announcement.text, announcement.time) = (["a=b", "path=/"], .awake)
        app.announcements = [announcement]
        rules.onMissedTransition = .end
        app.pageOutAfter = .seconds(5_400)
        app.paths = [
            PathTrigger(name: "/x/*", .exists, "/x/*"), PathTrigger(name: "in", .notEmpty, "/etc/torpor/in"),
            PathTrigger(name: "/c", .changed, "/c"), PathTrigger(name: "/m", .modified, "/m"),
        ]
        app.paths[1].wake = .foreground
        app.paths[2].reruns = true
        app.priority = -7
        app.purgeable = ["/etc/torpor/cache/a", "/dev/shm/c"]
        var probe = Probe(.http(host: "::1", port: 80, path: "/h?x"))
        probe.interval = .seconds(1)
        probe.timeout = .seconds(3)
        app.ready = .probe(probe)
        var health = HealthSpecification(.tcp(host: "::1", port: 80))
        (health.probe.interval, health.probe.timeout, health.failures) = (.seconds(7), .seconds(4), 5)
        app.health = health
        rules.readiness = .probe
        app.requires = ["c"]
        var profile = ResourceProfile()
        profile.cpuWeight = 2
        profile.ioWeight = 3
        profile.oomScoreAdjust = 4
        profile.timerSlack = .microseconds(5)
        profile.cpuMaximum = 12_500
        profile.memoryHigh = 32 << 20
        profile.memoryLow = 1 << 20
        app.resources = [.background: profile]
        rules.restart = .always
        rules.backoff.initial = .seconds(1)
        rules.backoff.factor = 3
        rules.backoff.cap = .seconds(2)
        rules.backoff.limit = 4
        rules.backoff.window = .seconds(5)
        rules.backoff.jitter = 0.5
        rules.backoff.stableAfter = .seconds(1)
        app.settingsFiles = ["/etc/torpor/s.conf", "/e/*.conf"]
        app.sharedResources = ["/l"]
        app.signals = [.didEnterBackground: 10]
        var web = SocketSpecification(.stream, .ipv6("::1", 80, interface: nil))
        web.name = "web"
        web.plan.reusePort = true
        (web.backlog, web.hasBacklog, web.noDelay, web.wake) = (7, true, true, .foreground)
        (web.holding, web.holdingAfter) = (.snapshot, .seconds(1))
        var names = SocketSpecification(.datagram, .port(53))
        names.name = "1"
        names.plan.reusePort = true
        names.receiveBuffer = 1 << 20
        app.sockets = [web, names]
        app.standardError = .file("e.log")
        app.stateLimit = nil
        var snapshot = SnapshotSpecification(.http(host: "::1", port: 8080, path: "/s?x"))
        snapshot.deadline = .seconds(2)
        app.snapshot = snapshot
        (app.presentation.title, app.presentation.titles) = ("T", ["pt-br": "U"])
        app.presentation.icon = "/etc/torpor/i.svg"
        app.presentation.icons = ["64": "/etc/torpor/i.png", "dark": "/d.svg"]
        (app.presentation.summary, app.presentation.summaries) = ("S", ["de": "Z"])
        app.presentation.categories = ["Utility", "X-Own"]
        app.presentation.language = "de_DE.UTF-8@euro"
        app.presentation.launchImage = "/etc/torpor/l.png"
        app.presentation.cover.command = ["/bin/c", "%f"]
        app.presentation.cover.after = .seconds(1)
        rules.snapshotDeadline = .seconds(2)
        app.standardInput = .file("/in")
        app.stopSignal = 2
        rules.successExitCodes = [3]
        rules.successSignals = [1]
        app.supplementaryGroups = ["44"]
        rules.suspendDeadline = .seconds(3)
        app.suspendWith = .freezer
        app.fetchInterval = .seconds(3_600)
        var calendar = TimerSpecification()
        calendar.name = "1"
        calendar.calendar = ["Mon..Fri 8:00", "daily"]
        calendar.writtenAccuracy = .seconds(1)
        calendar.randomDelay = .seconds(2)
        calendar.isPersistent = true
        var often = TimerSpecification()
        often.name = "often"
        often.every = .seconds(3_600)
        often.afterBoot = .seconds(300)
        often.afterStart = .seconds(60)
        often.wake = .none
        often.payload = .table(["a": .integer(1)])
        app.timers = [calendar, often]
        app.tags = ["t"]
        rules.taskBudget = .seconds(3_600)
        rules.taskTime = .seconds(20)
        rules.messageDeadline = .seconds(9)
        rules.transitionDeadline = .seconds(7)
        rules.isOneshot = true
        app.umask = 0o027
        app.user = "web"
        app.wakeAfterForceQuit = []
        app.wakeOnConnect = .foreground
        app.suspendedConnections = .close
        rules.watchdog = .seconds(10)
        app.watchdogSignal = 3
        app.rules = rules
        return app
    }
}
