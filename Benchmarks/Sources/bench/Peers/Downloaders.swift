// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A download program, for the measurement of transfers only: it supervises nothing.
struct Downloader: Peer {
    let name: String
    let program: String
    let version: String
    /// What it does or omits, for the conditions.
    var conditions = "keeps nothing for a loss of power and computes no SHA-256"
    /// The most downloads at a time.
    var most = Int.max
    /// The command that downloads URLs into a folder, at most `most` at a time.
    let command: (_ list: [(url: String, file: String)], _ folder: String) throws -> [String]

    var title: String {
        let text = (try? Child.output([program, version])) ?? ""
        return String(text.split(separator: "\n").first ?? "")
    }
    var missing: String? {
        (try? Child.output([program, version])) == nil ? "\(program) is not installed" : nil
    }

    func prepare(_ bench: Bench, _ load: Workload) throws -> Session { throw Trouble("\(name) supervises nothing") }

    static var curl: Downloader {
        Downloader(name: "curl", program: "curl", version: "--version", most: 300) { list, folder in
            let config = folder + "/curl.list"
            try list.map { "url = \"\($0.url)\"\noutput = \"\(folder)/\($0.file)\"\n" }.joined()
                .write(toFile: config, atomically: false, encoding: .utf8)
            return [
                "curl", "-s", "-Z", "--parallel-immediate", "--parallel-max", "\(min(300, list.count))", "-K", config,
            ]
        }
    }

    /// The program with which systemd-importd downloads images.
    static var systemd: Downloader {
        Downloader(
            name: "systemd-pull",
            program: "/lib/systemd/systemd-pull",
            version: "--version",
            conditions: "computes a SHA-256 and syncs the file, as Torpor does; begins anew what was cut",
            most: 1
        ) { list, folder in
            // The first call has no sum yet: a wrong one makes it fail, and print the right one.
            let known = try? String(contentsOfFile: folder + "/sum", encoding: .utf8)
            return [
                "/lib/systemd/systemd-pull", "raw", "--direct", "--verify=\(known ?? "no")", list[0].url,
                "\(folder)/\(list[0].file)",
            ]
        }
    }

    static var aria2: Downloader {
        Downloader(name: "aria2", program: "aria2c", version: "--version") { list, folder in
            let input = folder + "/aria2.list"
            try list.map { "\($0.url)\n  out=\($0.file)\n" }.joined()
                .write(toFile: input, atomically: false, encoding: .utf8)
            return [
                "aria2c", "-q", "-d", folder, "-i", input, "-j", "\(list.count)", "--file-allocation=none",
                "--allow-overwrite=true", "--max-connection-per-server=1",
            ]
        }
    }
}
