// SPDX-License-Identifier: Apache-2.0

import WireText

/// The verbs of `torpor app` that scripts of apps call often, without the argument parser (see ``PlainArguments``).
enum PlainAppVerb {
    typealias Run = () throws -> Void

    /// The verb in the words behind `app`.
    static func verb(_ words: ArraySlice<String>) -> Run? {
        switch words.first {
        case "delegate": delegate(words.dropFirst())
        case "task": task(words.dropFirst())
        case "state": state(words.dropFirst())
        default: nil
        }
    }

    private static func delegate(_ words: ArraySlice<String>) -> Run? {
        var hooks: [DelegateHook] = []
        var readsAnswers = false
        var program: [String] = []
        let read = PlainWords(words) { option, words in
            switch option {
            case "--on":
                guard let hook = words.value().flatMap({ DelegateHook($0) }), hook.isKnown else { return false }
                hooks.append(hook)
            case "--answers": readsAnswers = true
            case "--": program = words.program()
            default: return false
            }
            return true
        }
        guard let line = read, line.isForApps, line.operands.isEmpty else { return nil }
        guard !readsAnswers || (hooks.isEmpty && program.isEmpty) else { return nil }
        return { [hooks, program, readsAnswers] in
            try DelegateRun.run(hooks, program, json: line.options.json, readsAnswers: readsAnswers)
        }
    }

    private static func task(_ words: ArraySlice<String>) -> Run? {
        guard let verb = words.first else { return nil }
        var name: String?
        var stopBefore: Duration? = ScriptTasks.stopBefore
        var program: [String] = []
        let read = PlainWords(words.dropFirst()) { option, words in
            switch option {
            case "--name" where verb == "run": return words.set(&name) { $0 }
            case "--stop-before" where verb == "run":
                guard let text = words.value() else { return false }
                stopBefore = try? Quantity.duration(text)
                return stopBefore != nil || text == "none"
            case "--" where verb == "run":
                program = words.program()
                return true
            default: return false
            }
        }
        guard let line = read, line.isForApps else { return nil }
        let json = line.options.json
        switch (verb, line.operands.count) {
        case ("run", 0) where !program.isEmpty:
            return { [program, name, stopBefore] in
                try ScriptTasks.run(program, name: name, stopBefore: stopBefore, json: json)
            }
        case ("begin", 1): return { try ScriptTasks.begin(line.operands[0], json: json) }
        case ("end", 1): return { try ScriptTasks.end(line.operands[0], json: json) }
        case ("list", 0): return { try ScriptTasks.list(json: json) }
        case ("time", 0): return { try ScriptTasks.time(json: json) }
        default: return nil
        }
    }

    private static func state(_ words: ArraySlice<String>) -> Run? {
        guard let verb = words.first else { return nil }
        var scene: String?
        let read = PlainWords(words.dropFirst()) { option, words in
            option == "--scene" && verb != "restore" && words.set(&scene) { $0 }
        }
        guard let line = read, line.isForApps else { return nil }
        let json = line.options.json
        let file = line.operands.first ?? "-"
        switch (verb, line.operands.count) {
        case ("save", 1): return { [scene] in try SavedState.save(file, scene: scene, json: json) }
        case ("restore", 0...1) where !json || file != "-": return { try SavedState.restore(file, json: json) }
        case ("discard", 0): return { [scene] in try SavedState.discard(scene: scene, json: json) }
        default: return nil
        }
    }
}
