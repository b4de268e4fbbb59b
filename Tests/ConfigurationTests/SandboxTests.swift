// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Configuration

@Suite("Permissions that open what torpord itself keeps are a warning") struct SandboxPathTests {
    private func warnings(_ permission: String, _ keys: String = "") -> [String] {
        complaints(
            load([
                "torpor.toml": """
                [supervisor]
                state_directory = "/var/lib/torpor"
                runtime_directory = "/run/torpor"
                log_directory = "/var/log/torpor"
                [apps.web]
                exec = ["/a"]
                sandbox = true
                \(keys)
                [apps.web.permissions]
                "\(permission)" = { purpose = "Why" }
                """
            ])
        )
    }

    @Test(
        "a folder above it, a pattern, or itself",
        arguments: [
            "files:/", "files:/var/lib", "files:/var/lib/torpor", "files:/var/*", "files:/v?r/l[i]b", "files:/run",
            "files:/etc/torpor", "files:/etc/torpor/torpor.toml", "files:/var/lib:ro",
            "files:/var/lib/torpor/bundles/notes", "files:/var/run/torpor", "files:/var/r[u]n", "files:/var/log",
            "files:/var/log/torpor", "files:/var/log/torpor/web", "files:/var/lib/[[:alpha:]]orpor",
            "files:/var/lib/[^x]orpor", "files:/var/lib/\\\\torpo[r]",
        ]
    )
    func opens(permission: String) {
        let all = warnings(permission)
        #expect(all.count == 1 && all[0].contains("which torpord itself keeps"), "\(all)")
        #expect(all.first?.contains(permission.hasSuffix(":ro") ? "could read" : "leave its sandbox") == true)
    }

    @Test(
        "a way through /proc into other processes, however it is written",
        arguments: [
            "files:/proc/self/root/etc/torpor", "files:/proc/[1s]*/root/etc:ro", "files:/p[r]oc/1/root",
            "files:/proc/thread-self/root", "files:/proc/1/cwd:ro", "files:/proc/*/fd/3", "files:/proc/*/*",
            "files:/proc/self/task/1/root", "files:/proc/1/map_files", "files:/p[^x]oc/?/roo[[:alpha:]]",
            "files:/proc/s[e]lf/exe",
        ]
    )
    func processes(permission: String) {
        let all = warnings(permission)
        #expect(all.count == 1 && all[0].contains("leads through /proc"), "\(all)")
    }

    @Test(
        "not beside it, below it, or only for reading where that tells nothing",
        arguments: [
            "files:/srv", "files:/var/lib/torpor/apps/web", "files:/var/lib/torpo", "files:/var/lib/torporx",
            "files:/etc:ro", "files:/run:ro", "files:/etc/other", "files:/var/log:ro", "files:/var/log/torpors",
            "files:/proc:ro", "files:/proc/1/status:ro", "files:/proc/sys/*:ro", "files:/var/runs/torpor",
        ]
    )
    func leaves(permission: String) { #expect(warnings(permission).isEmpty) }

    @Test("not for an app of another user, which the rights of files keep out")
    func users() {
        #expect(warnings("files:/var/lib", "user = \"web\"").allSatisfy { !$0.contains("itself keeps") })
        #expect(warnings("files:/var/lib", "user = \"root\"").contains { $0.contains("itself keeps") })
    }
}
