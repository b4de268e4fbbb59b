// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Lifecycle
import Testing

@Suite("Processes as PM2 lists or stores them become apps")
struct PM2ProcessTests {
    /// The table `pm2_env` of a process.
    private static func process(_ name: String, _ more: String = "", status: String = "online") -> String {
        #"""
        "name":"\#(name)","namespace":"default","pm_exec_path":"/srv/shop/\#(name).js","pm_cwd":"/srv/shop",
        "exec_interpreter":"node","exec_mode":"fork_mode","node_args":[],"autorestart":true,"autostart":true,
        "vizion":true,"pm_id":3,"status":"\#(status)","instance_var":"NODE_APP_INSTANCE","kill_retry_time":100,
        "env":{"PATH":"/opt/n/bin:/usr/bin","HOME":"/root","LS_COLORS":"x","SSH_CLIENT":"1","PM2_HOME":"/root/.pm2",
               "unique_id":"u","MODE":"live","LANG":"C.UTF-8","NODE_APP_INSTANCE":0},
        "MODE":"live","HOME":"/root"\#(more)
        """#
    }

    private func imported(_ processes: [String], _ name: String = "list.json") throws -> Imported {
        let isDump = name.hasPrefix("dump.pm2")
        let texts = processes.map {
            isDump ? "{\($0)}" : #"{"pid":7,"name":"x","pm2_env":{\#($0)},"pm_id":3,"monit":{}}"#
        }
        return try Imported(name, "[" + texts.joined(separator: ",") + "]", kind: isDump ? nil : .pm2)
    }

    @Test("the processes of an app are its instances", arguments: ["list.json", "dump.pm2", "dump.pm2.bak"])
    func merged(file: String) throws {
        let cluster = Self.process("web", #","exec_mode":"cluster_mode","instances":2"#)
        let found = try imported([cluster, Self.process("job"), cluster], file)
        #expect(found.apps.keys.sorted() == ["job", "web@0", "web@1"])
        let app = try found["web@1"]
        #expect(app.exec == ["node", "/srv/shop/web.js"] && app.directory == "/srv/shop" && app.tags.isEmpty)
        let variables = ["MODE": "live", "LANG": "C.UTF-8", "NODE_APP_INSTANCE": "1", "TORPOR_INSTANCE": "1"]
        #expect(app.environment == variables)
        #expect(try found["job"].environment == ["MODE": "live", "LANG": "C.UTF-8"])
        #expect(found.remarks("job").isEmpty, "\(found.remarks("job"))")
        let general = found.result.remarks.map(\.text)
        #expect(general.contains { $0.hasPrefix("PM2 stores the environment of the shell") }, "\(general)")
    }

    @Test("apps of one name with other scripts stay apart")
    func apart() throws {
        let other = Self.process("web").replacing("/srv/shop/web.js", with: "/srv/shop/other.js")
        #expect(try imported([Self.process("web"), other]).apps.count == 2)
    }

    @Test("what PM2 had stopped is launched on demand")
    func stopped() throws {
        let down = Self.process("web", status: "stopped")
        let found = try imported([down])
        #expect(try found["web"].launch == .onDemand)
        #expect(found.remarks("web").contains { $0.hasPrefix("was stopped in PM2") })
        let some = try imported([down, Self.process("web")])
        #expect(try some["web@0"].launch == .foreground)
        #expect(some.remarks("web").contains("1 of its 2 instances was stopped in PM2"))
    }

    @Test("a variable that is counted up begins with the least, and a shell line is one again")
    func counted() throws {
        let processes = [3001, 3000].map { port in
            Self.process("web", #","increment_var":"PORT""#).replacing(
                #""MODE":"live","LANG""#,
                with: #""PORT":\#(port),"LANG""#
            )
        }
        #expect(try imported(processes)["web@3000"].environment["PORT"] == "3000")
        let line = Self.process("web", #","args":["-c","node a.js --x"]"#)
            .replacing("/srv/shop/web.js", with: "/usr/bin/bash").replacing(
                #""exec_interpreter":"node""#,
                with: #""exec_interpreter":"none""#
            )
        #expect(try imported([line])["web"].exec == ["node", "a.js", "--x"])
    }

    @Test("modules of PM2 are left out, and PM2's own PATH finds the programs")
    func modules() throws {
        let module = Self.process("pm2-logrotate", #","pmx_module":true"#)
        let text = "[" + [module, Self.process("web")].map { #"{"pm2_env":{\#($0)}}"# }.joined(separator: ",") + "]"
        var machine = tree(["list.json": text])
        machine.program = { $0 == "/opt/n/bin/node" ? $0 : nil }
        let found = try Imported("list.json", in: machine, kind: .pm2)
        #expect(found.apps.keys.sorted() == ["web"])
        #expect(found.result.remarks.contains { $0.text == "pm2-logrotate is left out: a module of PM2." })
        #expect(try found["web"].environment["PATH"] == "/opt/n/bin:" + ConfigurationSystem.servicePath)
    }

    /// As node prints it: `console.log(util.inspect(list, false, null, false))` in PM2's `prettylist`.
    private static let prettylist = #"""
        [
          {
            pid: 4242,
            name: 'web',
            pm2_env: {
              name: 'web',
              namespace: 'default',
              pm_exec_path: '/srv/shop/web.js',
              pm_cwd: '/srv/shop',
              exec_interpreter: 'node',
              exec_mode: 'fork_mode',
              node_args: [],
              autorestart: true,
              vizion: true,
              pm_id: 0,
              status: 'online',
              instance_var: 'NODE_APP_INSTANCE',
              axm_options: { error: true, profiling: undefined },
              created_at: 1764441000000,
              env: {
                PATH: '/opt/n/bin:/usr/bin',
                HOME: '/root',
                unique_id: 'u-1',
                MODE: "it's live",
                QUOTED: `it's "live"`,
                WINDOWS: 'C:\\app\\x',
                TEXT: 'one\n' +
                  'two lines that are long enough to be split by the printer of node, really',
                NODE_APP_INSTANCE: 0,
                'EMPTY': ''
              },
              versioning: null,
              axm_monitor: {
                'Used Heap Size': { value: '3.5', type: 'internal', f: [Function: f] }
              }
            },
            pm_id: 0,
            monit: { memory: 1, cpu: 0.2 }
          }
        ]
        """#

    @Test("what pm2 prettylist prints is read as what pm2 jlist does")
    func prettylist() throws {
        let found = try Imported("list.txt", Self.prettylist, kind: .pm2)
        let app = try found["web"]
        #expect(app.exec == ["node", "/srv/shop/web.js"] && app.directory == "/srv/shop")
        let variables = [
            "MODE": "it's live", "QUOTED": #"it's "live""#, "WINDOWS": #"C:\app\x"#, "EMPTY": "",
            "TEXT": "one\ntwo lines that are long enough to be split by the printer of node, really",
        ]
        for (name, value) in variables { #expect(app.environment[name] == value, "\(name): \(app.environment)") }
        #expect(app.environment["HOME"] == nil)
    }
}
