// SPDX-License-Identifier: Apache-2.0

/// The script that a command gives to an interpreter, such as `main.js` of `["node", "--inspect", "main.js"]`.
///
/// Nil is the answer whenever the words leave a doubt, as after an option that is not in the tables below: its value
/// would be taken for the script.
struct ScriptArgument: Hashable {
    /// The path, as it is written.
    let path: String
    /// The endings that the interpreter adds to a path that does not exist.
    let endings: [String]
    /// Whether the interpreter searches PATH for a name without a slash.
    let isOnPath: Bool

    init?(of command: [String]) {
        guard let program = command.first?.split(separator: "/").last,
            let interpreter = Interpreter.all[Self.family(program)],
            let path = interpreter.script(command.dropFirst())
        else { return nil }
        self.path = path
        endings = interpreter.endings
        isOnPath = interpreter.isShell
    }

    /// The name of an interpreter without the version, which may be a part of it (`python3.11`).
    private static func family(_ name: Substring) -> String {
        let end = name.lastIndex { !$0.isNumber && $0 != "." }
        return end.map { String(name[...$0]) } ?? String(name)
    }
}

/// The options of an interpreter, as far as they come before a script.
private struct Interpreter {
    /// Letters of options without a value. Several may be written as one word.
    var flags = ""
    /// Letters of options with a value, which is the rest of the word or, if there is none, the next word.
    var valued = ""
    /// Letters of options whose value is always in the same word, if there is one.
    var attached = ""
    /// Long options whose next word is no value. With `=`, options need not be listed.
    var longFlags: Set<String> = []
    /// Long options whose value is the next word, unless it is behind `=`.
    var longValued: Set<String> = []
    /// Whether options may begin with `+`, and the value of an option is always the next word.
    var isShell = false
    /// Words one of which may come before the script (`run`).
    var verbs: Set<String> = []
    /// Whether there is no script without one of ``verbs``.
    var needsVerb = false
    /// The endings that are added to a path that does not exist.
    var endings: [String] = []
    /// If not empty, only a word that has one of these endings is a script: others may be names of tasks.
    var onlyEndings: [String] = []

    /// Long options with `=` behind which there is no script, or with which it is in another folder.
    private static let decisive: Set = [
        "cwd", "directory", "docroot", "eval", "file", "print", "process-begin", "process-code", "process-end",
        "process-file", "run", "server",
    ]

    /// The script among the words behind the interpreter's name; nil if there is none, or if that is unknown.
    func script(_ words: ArraySlice<String>) -> String? {
        var words = words
        var hasVerb = false
        while let word = words.popFirst() {
            if word == "-" { return nil }
            if word == "--" { return words.first.flatMap(checked) }
            if word.hasPrefix("--") {
                guard skip(long: word, &words) else { return nil }
            } else if word.hasPrefix("-") || isShell && word.hasPrefix("+") {
                guard skip(letters: word.dropFirst(), &words) else { return nil }
            } else if !hasVerb, verbs.contains(word) {
                hasVerb = true
            } else {
                return needsVerb && !hasVerb ? nil : checked(word)
            }
        }
        return nil
    }

    private func checked(_ word: String) -> String? {
        // A URL, or a package such as npm:cowsay.
        if word.isEmpty || word.contains(":") || word.hasPrefix("+") { return nil }
        return onlyEndings.isEmpty || onlyEndings.contains { word.hasSuffix($0) } ? word : nil
    }

    private func skip(long word: String, _ words: inout ArraySlice<String>) -> Bool {
        let name = String(word.dropFirst(2).prefix { $0 != "=" }).replacing("_", with: "-")
        if word.contains("=") { return !Self.decisive.contains(name) }
        return longFlags.contains(name) || longValued.contains(name) && words.popFirst() != nil
    }

    private func skip(letters: Substring, _ words: inout ArraySlice<String>) -> Bool {
        var letters = letters
        while let letter = letters.popFirst() {
            if flags.contains(letter) { continue }
            if attached.contains(letter) { return true }
            guard valued.contains(letter) else { return false }
            if isShell || letters.isEmpty, words.popFirst() == nil { return false }
            if !isShell { return true }
        }
        return true
    }

    static let all: [String: Interpreter] = {
        let shell = Interpreter(
            flags: "abefhiklmnpruvxBCEHPTV",
            valued: "oO",
            longFlags: ["login", "noprofile", "norc", "posix", "restricted", "verbose", "noediting"],
            longValued: ["rcfile", "init-file"],
            isShell: true
        )
        let python = Interpreter(
            flags: "bBdEiIOPqRsStuvx",
            valued: "WX",
            longValued: ["check-hash-based-pycs"]
        )
        let scripts = [".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"]
        let node = Interpreter(
            valued: "rC",
            longFlags: [
                "abort-on-uncaught-exception", "cpu-prof", "enable-source-maps", "experimental-modules",
                "experimental-strip-types", "experimental-transform-types", "experimental-vm-modules", "expose-gc",
                "heap-prof", "inspect", "inspect-brk", "inspect-wait", "jitless", "no-deprecation", "no-warnings",
                "optimize-for-size", "pending-deprecation", "permission", "preserve-symlinks",
                "preserve-symlinks-main", "prof", "report-on-fatalerror", "report-on-signal",
                "report-uncaught-exception", "throw-deprecation", "trace-deprecation", "trace-gc", "trace-uncaught",
                "trace-warnings", "use-bundled-ca", "use-openssl-ca", "use-system-ca", "watch",
                "watch-preserve-output", "zero-fill-buffers",
            ],
            longValued: [
                "conditions", "cpu-prof-dir", "diagnostic-dir", "dns-result-order", "env-file", "env-file-if-exists",
                "experimental-loader", "heap-prof-dir", "heapsnapshot-signal", "icu-data-dir", "import", "inspect-port",
                "loader", "openssl-config", "redirect-warnings", "report-dir", "report-directory", "report-filename",
                "require", "title", "tls-cipher-list", "tls-keylog", "trace-event-categories", "unhandled-rejections",
                "watch-path",
            ],
            verbs: ["inspect"],
            endings: [".js", ".json", ".node", ".cjs", ".mjs"]
        )
        let ruby = Interpreter(
            flags: "adlnpswvUy",
            valued: "IrE",
            attached: "WK0",
            longFlags: ["yjit", "jit", "rjit", "verbose", "disable-gems", "enable-frozen-string-literal"],
            longValued: ["enable", "disable", "encoding", "external-encoding", "internal-encoding"]
        )
        let perl = Interpreter(flags: "acnpstTuUwWX", valued: "I", attached: "dmM")
        let php = Interpreter(
            flags: "Cenq",
            valued: "cdz",
            longFlags: ["no-php-ini", "no-header"],
            longValued: ["php-ini", "define", "zend-extension"]
        )
        let deno = Interpreter(
            flags: "AENRSWIqr",
            valued: "cL",
            longFlags: [
                "allow-all", "allow-env", "allow-ffi", "allow-import", "allow-net", "allow-read", "allow-run",
                "allow-sys", "allow-write", "cached-only", "check", "deny-env", "deny-ffi", "deny-net", "deny-read",
                "deny-run", "deny-sys", "deny-write", "env-file", "frozen", "inspect", "inspect-brk", "inspect-wait",
                "no-check", "no-clear-screen", "no-config", "no-lock", "no-npm", "no-prompt", "no-remote", "quiet",
                "reload", "unstable", "unstable-cron", "unstable-kv", "watch", "watch-hmr",
            ],
            longValued: ["cert", "config", "ext", "host", "import-map", "location", "log-level", "port", "seed"],
            verbs: ["run", "serve"],
            needsVerb: true,
            onlyEndings: scripts
        )
        let bun = Interpreter(
            flags: "b",
            valued: "r",
            longFlags: [
                "bun", "expose-gc", "hot", "inspect", "inspect-brk", "inspect-wait", "no-clear-screen",
                "no-deprecation", "no-install", "prefer-offline", "silent", "smol", "watch",
            ],
            longValued: ["conditions", "env-file", "import", "port", "preload", "require"],
            verbs: ["run"],
            onlyEndings: scripts
        )
        return [
            "sh": shell, "bash": shell, "dash": shell, "ash": shell, "ksh": shell, "zsh": shell,
            "python": python, "pypy": python, "node": node, "nodejs": node, "ruby": ruby, "perl": perl, "php": php,
            "deno": deno, "bun": bun,
        ]
    }()
}
