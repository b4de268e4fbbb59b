// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing

@Suite(
    "The holding page in a real browser",
    .enabled(
        if: ["/usr/bin/chromium", "/usr/bin/chromedriver"].allSatisfy(File.isExecutable),
        "chromium and chromium-driver are needed: make test installs them"
    )
)
struct HoldingBrowserTests {
    private static let app = """
        import http.server, os, socket, tp
        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = b"<title>here</title><link rel=icon href=data:,><h1>The app itself</h1>"
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            def address_string(self):
                return "-"
        tp.on("SIGTERM", lambda: os._exit(0))
        tp.await_file("go")
        server = http.server.ThreadingHTTPServer(("", 0), Page, bind_and_activate=False)
        server.socket = socket.socket(fileno=3)
        server.serve_forever()
        """

    private static let icon = """
        <svg xmlns="http://www.w3.org/2000/svg" width="32" height="24"><rect width="32" height="24"/></svg>
        """

    @Test("shows that the app is on its way, and then the app, without a reload by hand")
    func seen() throws {
        let port = try TestAddress.port()
        let toml = """
            [apps.shop]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            title = "The Shop"
            icon = "@D/icon.svg"
            launch = "on-demand"
            background_time = "5min"
            event_time = "5min"
            sockets = [{ stream = "127.0.0.1:\(port)", holding = true, holding_after = "100ms" }]

            """
        try withDaemon(toml, files: ["app.py": Self.app, "icon.svg": Self.icon]) { daemon in
            let scripts = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            let script = scripts.appending(path: "Dashboard/browser/holding.py").path
            let result = try Spawn.run(
                ["/usr/bin/env", "python3", script, "http://127.0.0.1:\(port)/", daemon.directory + "/go"]
            )
            #expect(result.code == 0 && result.output.contains("seen"), "\(result.output)")
        }
    }
}
