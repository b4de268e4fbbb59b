// SPDX-License-Identifier: Apache-2.0

import WireText

/// A text in the options of a policy that selects apps: a name, a pattern with `*` and `?`, or `tag:NAME`.
public struct PolicySelector: Sendable, Hashable {
    /// The option's path, such as `apps.0.apps`.
    public var option: String
    /// The selector as it was written.
    public var text: String

    /// Creates a selector from its parts.
    public init(option: String, text: String) {
        self.option = option
        self.text = text
    }

    /// The apps of a configuration, as far as selectors match them.
    struct Apps {
        /// The names of apps, with those of instances.
        var names: Set<String> = []
        /// The names of apps with instances.
        var templates: Set<String> = []
        /// The names of templates of scenes. Each has any number of apps, whose names begin with the template's and @.
        var scenes: Set<String> = []
        var tags: Set<String> = []

        init(_ apps: [AppSpecification], templates: [AppSpecification]) {
            for app in apps {
                names.insert(app.name)
                self.templates.insert(app.template)
                tags.formUnion(app.tags)
            }
            for template in templates {
                scenes.insert(template.name)
                tags.formUnion(template.tags)
            }
        }
    }

    /// Why the selector matches no app; nil if it matches one, or may match a scene.
    ///
    /// - Parameter origin: the place for which the diagnostic is.
    func problem(_ apps: Apps, _ origin: Origin) -> String? {
        let isTag = text.hasPrefix("tag:")
        let pattern = isTag ? String(text.dropFirst(4)) : text
        let isPattern = pattern.contains("*") || pattern.contains("?")
        if isTag {
            if isPattern ? apps.tags.contains(where: { Self.matches(pattern, $0) }) : apps.tags.contains(pattern) {
                return nil
            }
        } else if matchesName(pattern, isPattern, apps) {
            return nil
        }
        let what = isTag ? "no app has the tag \(quoted(pattern))" : "there is no app \(quoted(pattern))"
        if pattern.contains("[") || pattern.contains("{") {
            return what + ": only * and ? stand for other characters"
        }
        if isPattern { return (isTag ? "no tag of an app" : "no app") + " matches \(quoted(pattern))" }
        let known = isTag ? apps.tags : apps.names.union(apps.templates).union(apps.scenes)
        return what + origin.hint(pattern, among: known)
    }

    private func matchesName(_ pattern: String, _ isPattern: Bool, _ apps: Apps) -> Bool {
        if !isPattern {
            let template = Resolver.template(pattern)
            return apps.names.contains(pattern) || apps.templates.contains(pattern) || apps.scenes.contains(template)
        }
        if apps.names.contains(where: { Self.matches(pattern, $0) }) { return true }
        // A pattern may match a scene if the part before its first wildcard is the beginning of a scene's name.
        let start = pattern.prefix { $0 != "*" && $0 != "?" }
        return apps.scenes.contains { "\($0)@".hasPrefix(start) || start.hasPrefix("\($0)@") }
    }

    /// Whether a name matches a pattern of `*` and `?`, as policies compare them: `[` and `]` stand for themselves.
    private static func matches(_ pattern: String, _ name: String) -> Bool {
        var literal = ""
        for character in pattern { literal += character == "[" ? "[[]" : String(character) }
        return Glob.matches(literal, name)
    }
}
