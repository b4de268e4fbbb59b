// SPDX-License-Identifier: Apache-2.0

import EverydayVerbs
import TorporAPI
import Varlink

/// Shell completions for the argument APP. If no supervisor runs, there are no completions and no error message.
enum Completion {
    /// The names of all apps.
    package static func apps(_ words: [String]) -> [String] { list(words).compactMap { $0["name"]?.stringValue } }

    /// The names of all apps, names that match all instances of a template, and tags.
    static func appsAndTags(_ words: [String]) -> [String] {
        let list = list(words)
        let names = list.compactMap { $0["name"]?.stringValue }
        let templates = Set(names.compactMap { name in name.lastIndex(of: "@").map { String(name[..<$0]) } })
        let tags = Set(list.flatMap { $0["tags"]?.arrayValue ?? [] }.compactMap(\.stringValue))
        return names + templates.sorted() + tags.sorted().map { "tag:" + $0 }
    }

    private static func list(_ words: [String]) -> [JSON] {
        var socket: String?
        for (word, next) in zip(words, words.dropFirst()) where word == "--socket" { socket = next }
        for word in words where word.hasPrefix("--socket=") { socket = String(word.dropFirst(9)) }
        guard let client = try? VarlinkClient(path: socket ?? Manager.defaultSocket),
            let reply = try? client.call(ManagerRequest.list.call, timeoutMilliseconds: 500)
        else { return [] }
        return reply["apps"]?.arrayValue ?? []
    }
}
