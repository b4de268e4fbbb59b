// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing

/// podman with a storage of its own, a tiny image in it, and torpord in a mount namespace that has cgroup v2 alone: crun
/// runs nothing where both versions are mounted.
struct Podman {
    let folder: String

    /// What answers requests in the image, says that it is ready, and ends as it is told.
    static let program = """
        #define _GNU_SOURCE
        #include <arpa/inet.h>
        #include <fcntl.h>
        #include <signal.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/socket.h>
        #include <sys/un.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static const char *stubborn;
        static void end(int number) {
            if (stubborn && number == SIGTERM) return;
            dprintf(1, "got %s\\n", number == SIGQUIT ? "QUIT" : "TERM");
            _exit(number == SIGQUIT ? 0 : 7);
        }
        static void sicken(int number) { unlink("/well"); }
        int main(int count, char **words) {
            if (count == 2 && strcmp(words[1], "check") == 0) return access("/well", F_OK) != 0;
            if (count == 3 && strcmp(words[1], "hang") == 0) {
                if (fork() == 0) setsid();
                for (;;) pause();
            }
            close(open("/well", O_CREAT | O_WRONLY, 0600));
            signal(SIGHUP, sicken);
            stubborn = getenv("STUBBORN");
            signal(SIGTERM, end);
            signal(SIGQUIT, end);
            dprintf(1, "greeting %s, pid %d, PATH %s, key %s\\n", getenv("GREETING") ? getenv("GREETING") : "none",
                    (int)getpid(), getenv("PATH"), getenv("STORAGE_KEY"));
            if (getenv("DEAF")) {
                signal(SIGTERM, SIG_DFL);
                if (getenv("DEAF")[0] == '2' && fork() == 0) {
                    signal(SIGTERM, end);
                    for (;;) pause();
                }
                for (;;) if (wait(NULL) > 0) return 0; else pause();
            }
            if (fork() == 0) {
                for (;;) pause();
            }
            int listener = 3;
            if (count > 1) {
                listener = socket(AF_INET, SOCK_STREAM, 0);
                setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
                struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1]))};
                address.sin_addr.s_addr = htonl(INADDR_ANY);
                if (bind(listener, (void *)&address, sizeof address) || listen(listener, 64)) return 1;
            } else if (!getenv("LISTEN_FDS")) listener = -1;
            if (getenv("ENDS")) {
                struct sockaddr_un to = {.sun_family = AF_UNIX};
                strncpy(to.sun_path, getenv("NOTIFY_SOCKET"), sizeof to.sun_path - 1);
                int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
                sendto(fd, "MAINPID=1", 9, 0, (void *)&to, sizeof to);
                return atoi(getenv("ENDS"));
            }
            if (getenv("READY")) {
                struct sockaddr_un to = {.sun_family = AF_UNIX};
                strncpy(to.sun_path, getenv("NOTIFY_SOCKET"), sizeof to.sun_path - 1);
                int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
                sendto(fd, "READY=1\\nSTATUS=inside", 22, 0, (void *)&to, sizeof to);
            }
            for (int requests = 1; listener >= 0; requests++) {
                int client = accept(listener, NULL, NULL);
                char text[1024];
                if (client < 0 || read(client, text, sizeof text) < 0) { requests--; continue; }
                snprintf(text, sizeof text, "request %d", requests);
                dprintf(client, "HTTP/1.0 200 OK\\r\\nContent-Length: %zu\\r\\n\\r\\n%s", strlen(text), text);
                close(client);
            }
            for (;;) pause();
        }
        """

    static let isThere = ["podman", "crun", "gcc", "iptables"].allSatisfy { program in
        ["/usr/bin/", "/usr/sbin/"].contains { File.isExecutable($0 + program) }
    }

    /// Makes a storage in the folder, and the images `localhost/small` and `localhost/quits`, whose stop signal is SIGQUIT.
    init(_ folder: String) throws {
        self.folder = folder
        try File.makeDirectories(folder + "/root")
        try File.makeDirectories(folder + "/temporary")
        try File.write(
            folder + "/storage.conf",
            """
            [storage]
            driver = "overlay"
            graphroot = "\(folder)/graph"
            runroot = "\(folder)/run"

            """
        )
        try File.write(
            folder + "/containers.conf",
            """
            [engine]
            tmp_dir = "\(folder)/tmp"
            lock_type = "file"
            events_logger = "none"
            runtime = "crun"
            helper_binaries_dir = ["/usr/lib/podman", "/usr/libexec/podman"]
            [network]
            network_config_dir = "\(folder)/networks"

            """
        )
        try File.write(folder + "/policy.json", "{ \"default\": [{ \"type\": \"insecureAcceptAnything\" }] }")
        try File.write(folder + "/registries.conf", "unqualified-search-registries = []\n")
        try File.write(folder + "/app.c", Self.program)
        try run(["/usr/bin/gcc", "-static", "-O1", "-o", folder + "/root/app", folder + "/app.c"])
        try run(["/usr/bin/tar", "-C", folder + "/root", "-cf", folder + "/image.tar", "."])
        try podman(["import", folder + "/image.tar", "localhost/small"])
        try podman(["import", "--change", "STOPSIGNAL SIGQUIT", folder + "/image.tar", "localhost/quits"])
    }

    var environment: [String: String] {
        [
            "TMPDIR": folder + "/temporary",
            "CONTAINERS_STORAGE_CONF": folder + "/storage.conf", "CONTAINERS_CONF": folder + "/containers.conf",
            "CONTAINERS_REGISTRIES_CONF": folder + "/registries.conf",
        ]
    }

    /// Words that start a program where torpord sees cgroup v2 alone, in a network of its own if that is wanted: podman's
    /// networks of several storages have the same addresses.
    static func wrapper(hasNetwork: Bool) -> [String] {
        [
            "/usr/bin/unshare", "--mount", "--propagation", "private",
        ] + (hasNetwork ? ["--net"] : []) + [
            "/bin/sh", "-ec",
            """
            [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ] || {
                umount -R /sys/fs/cgroup
                mount -t cgroup2 none /sys/fs/cgroup
            }
            \(hasNetwork ? ownNetwork : "")
            exec "$@"
            """, "sh",
        ]
    }

    /// podman's namespaces, addresses and name server are in folders that no option names.
    private static let ownNetwork = """
        for folder in /run/netns /run/containers/networks; do
            mkdir -p $folder
            mount -t tmpfs none $folder
        done
        ip link set lo up
        """

    @discardableResult
    func run(_ words: [String]) throws -> String {
        let (code, output) = try Spawn.run(words, environment: environment)
        guard code == 0 else { throw Trouble("\(words) ended with \(code): \(output)") }
        return output
    }

    @discardableResult
    func podman(_ words: [String], in namespace: Int32? = nil) throws -> String {
        let enter = namespace.map { ["/usr/bin/nsenter", "--target", "\($0)", "--mount", "--net"] } ?? []
        return try run(enter + ["/usr/bin/podman", "--cgroup-manager=cgroupfs"] + words)
    }

    /// The containers that podman knows.
    func containers(_ daemon: Daemon) throws -> [String] {
        try podman(["ps", "--all", "--format={{.Names}}"], in: daemon.livingKeeper())
            .split(separator: "\n").map(String.init)
    }
}

/// Runs a scenario with torpord and a podman of its own. `mayCopySockets`: false if torpord may not copy descriptors, as in
/// systemd-nspawn.
func withPodman(
    _ toml: String,
    hasNetwork: Bool = false,
    mayCopySockets: Bool = true,
    environment: [String: String] = [:],
    at location: SourceLocation = #_sourceLocation,
    _ body: (Daemon, Podman) throws -> Void
) throws {
    let folder = try Daemon.makeFolder()
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let podman = try Podman(folder)
    try File.write(folder + "/forbid.py", Servers.forbid)
    let forbid = mayCopySockets ? [] : ["/usr/bin/python3", folder + "/forbid.py"]
    let daemon = try Daemon(
        toml,
        environment: podman.environment.merging(environment) { $1 }.merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 },
        nested: true,
        wrapper: Podman.wrapper(hasNetwork: hasNetwork) + forbid
    )
    try daemon.waitUntilItAnswers(at: location)
    try body(daemon, podman)
    try daemon.endEverything(at: location)
    #expect(try podman.podman(["ps", "--all", "--format={{.Names}}"]) == "", sourceLocation: location)
}
