// SPDX-License-Identifier: Apache-2.0

import Foundation

/// supervisord, in Python.
struct Supervisord: Peer {
    let name = "supervisord"
    var title: String { "supervisord \(Packages.version("supervisor"))" }
    var missing: String? { Packages.missing("supervisor", programs: ["supervisord", "supervisorctl"]) }
    let conditions =
        "startsecs = 0, autorestart = true, stderr to the same pipe as stdout, no log files; it looks for ends once a second"

    var needs: (processes: Int, descriptors: Int) { (0, 2) }

    func prepare(_ bench: Bench, _ load: Workload) throws -> Session { try SupervisordSession(bench, self, load) }
}

final class SupervisordSession: Session {
    private var configuration: String { folder + "/supervisord.conf" }
    private var socket: String { runtime + "/supervisor.sock" }
    private var connection: HTTPConnection?

    override init(_ bench: Bench, _ peer: any Peer, _ load: Workload) throws {
        try super.init(bench, peer, load)
        var text = """
            [unix_http_server]
            file = \(socket)
            [supervisord]
            nodaemon = true
            user = \(geteuid() == 0 ? "root" : NSUserName())
            logfile = /dev/null
            logfile_maxbytes = 0
            pidfile = \(runtime)/supervisord.pid
            minfds = \(max(1_024, load.count * 2 + 100))
            [rpcinterface:supervisor]
            supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
            [supervisorctl]
            serverurl = unix://\(socket)

            """
        if load.count > 0 {
            // One group: separate programs would be stopped one after the other, some only after a second each.
            let command = ([bench.worker, "%(process_num)d"] + load.arguments).joined(separator: " ")
            text += """
                [program:w]
                command = \(command)
                numprocs = \(load.count)
                process_name = w%(process_num)d
                startsecs = 0
                autorestart = true
                redirect_stderr = true
                \(load.settings["supervisord"] ?? "stdout_logfile = NONE")

                """
        }
        try text.write(toFile: configuration, atomically: false, encoding: .utf8)
    }

    override func start() throws {
        child = try Child(["supervisord", "-c", configuration], environment: environment, errors: errors)
    }

    private func control(_ arguments: String...) -> [String] { ["supervisorctl", "-c", configuration] + arguments }

    /// Calls XML-RPC, on a connection that is kept alive if the server allows.
    private func call(_ method: String, _ parameters: String...) throws {
        let connection = try connection ?? HTTPConnection(path: socket)
        self.connection = connection
        let values = parameters.map { "<param><value><string>\($0)</string></value></param>" }.joined()
        let reply = try connection.post(
            "/RPC2",
            "<?xml version='1.0'?><methodCall><methodName>supervisor.\(method)</methodName>"
                + "<params>\(values)</params></methodCall>"
        )
        guard reply.contains("<methodResponse>"), !reply.contains("<fault>") else {
            throw Trouble("supervisord answered \(method) with: \(reply.prefix(200))")
        }
    }

    override func cleanUp() { connection = nil }

    override var suspenders: [Suspender] {
        [
            Suspender(
                way: "connection",
                suspend: { try self.call("signalProcess", "w:w\($0)", "STOP") },
                resume: { try self.call("signalProcess", "w:w\($0)", "CONT") }
            ),
            Suspender(
                way: "command",
                suspend: { _ = try Child.time(self.control("signal", "STOP", "w:w\($0)")) },
                resume: { _ = try Child.time(self.control("signal", "CONT", "w:w\($0)")) }
            ),
        ]
    }

    override var queries: [Query] {
        let asked = { (ask: () throws -> Void) in
            let began = now()
            try ask()
            return now() - began
        }
        return [
            Query(kind: .status, way: "command") { try Child.time(self.control("status", "w:w0")) },
            Query(kind: .status, way: "connection") { try asked { try self.call("getProcessInfo", "w:w0") } },
            Query(kind: .list, way: "command") { try Child.time(self.control("status")) },
            Query(kind: .list, way: "connection") { try asked { try self.call("getAllProcessInfo") } },
        ]
    }
}
