// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import TestAddresses
import Testing

/// nginx and lighttpd with files of `Bench.served`, without rights and in no folder but the bench's.
extension Bench {
    /// Starts nginx: `/` are files, `/dav/` takes them, `/vault/` wants the login me:secret, `/down` leads to http, at
    /// `plain` and, with a certificate of an authority of its own (`authority`), at `secure`, for the name localhost only.
    func nginx(rate: String = "0") throws -> (plain: String, secure: String, authority: String, server: Server) {
        let (plain, secure) = (try TestAddress.port(), try TestAddress.port())
        try makeCertificate()
        try File.makeDirectories(served + "/dav")
        try File.makeDirectories(served + "/vault")
        // {SHA}: a hash that needs no program.
        try File.write(directory + "/logins", "me:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n")
        let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path \(directory)/nginx-\($0);" }.joined(separator: "\n")
        try File.write(
            directory + "/nginx.conf",
            """
            \(Users.isRoot ? "user root;" : "")
            daemon off;
            worker_processes 1;
            pid \(directory)/nginx.pid;
            error_log \(directory)/nginx-error.log;
            events { worker_connections 256; }
            http {
                \(folders)
                access_log \(directory)/nginx-access.log;
                client_max_body_size 100m;
                limit_rate \(rate);
                server {
                    listen \(TestAddress.host):\(plain);
                    listen 127.0.0.1:\(secure) ssl http2;
                    server_name localhost;
                    ssl_certificate \(directory)/server.crt;
                    ssl_certificate_key \(directory)/server.key;
                    root \(served);
                    location /dav/ { dav_methods PUT; create_full_put_path on; }
                    location = /down { return 302 http://\(TestAddress.host):\(plain)/a; }
                    location /vault/ { auth_basic "the vault"; auth_basic_user_file \(directory)/logins; }
                }
            }
            """
        )
        let words = [
            "/usr/sbin/nginx", "-p", directory, "-e", directory + "/nginx-error.log", "-c", directory + "/nginx.conf",
        ]
        let server = try Server(words, log: directory + "/nginx.log")
        add(server)
        try eventually("nginx") { Self.isListening(plain) && Self.isListening(secure) }
        return (
            "http://\(TestAddress.host):\(plain)", "https://localhost:\(secure)", directory + "/ca.crt", server
        )
    }

    /// Starts lighttpd: files, and WebDAV has to be asked elsewhere.
    func lighttpd() throws -> String {
        let port = try TestAddress.port()
        try File.write(
            directory + "/lighttpd.conf",
            """
            server.bind = "\(TestAddress.host)"
            server.port = \(port)
            server.document-root = "\(served)"
            server.errorlog = "\(directory)/lighttpd-error.log"
            # Without a type it gives no tag.
            mimetype.assign = ( "" => "application/octet-stream" )
            server.feature-flags = ( "server.graceful-shutdown-timeout" => 1 )
            """
        )
        add(
            try Server(
                ["/usr/sbin/lighttpd", "-D", "-f", directory + "/lighttpd.conf"],
                log: directory + "/lighttpd.log"
            )
        )
        try eventually("lighttpd") { Self.isListening(port) }
        return "http://\(TestAddress.host):\(port)"
    }

    /// Whether something listens at a port of this process's.
    private static func isListening(_ port: UInt16) -> Bool {
        let digits = String(port, radix: 16, uppercase: true)
        let end = ":" + String(repeating: "0", count: 4 - digits.count) + digits
        // 0: 0100007F:1F90 00000000:0000 0A …
        return (try? File.readString("/proc/net/tcp", limit: 1 << 26))?.split(separator: "\n").contains { line in
            let words = line.split(separator: " ")
            return words.count > 3 && words[1].hasSuffix(end) && words[3] == "0A"
        } ?? false
    }

    private func makeCertificate() throws {
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        func make(_ words: [String]) throws {
            let log = try File.open(directory + "/openssl.log", [.write, .create, .append])
            let child = try ChildProcess(
                "/usr/bin/openssl",
                arguments: ["openssl"] + words,
                environment: ["HOME=\(directory)"],
                descriptors: [(1, log.raw), (2, log.raw)]
            )
            guard child.reap() == 0 else {
                throw Trouble((try? File.readString(directory + "/openssl.log")) ?? "openssl")
            }
        }
        try make(
            ["req", "-x509"] + key
                + [
                    "-keyout", directory + "/ca.key", "-out", directory + "/ca.crt", "-days", "2", "-subj",
                    "/CN=Test authority",
                ]
        )
        try make(
            ["req", "-x509"] + key
                + [
                    "-keyout", directory + "/server.key", "-out", directory + "/server.crt", "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext",
                    "basicConstraints=critical,CA:FALSE",
                    "-CA", directory + "/ca.crt", "-CAkey", directory + "/ca.key",
                ]
        )
    }
}
