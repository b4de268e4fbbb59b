// SPDX-License-Identifier: Apache-2.0

import WireText

/// Imports `podman pod create` together with the `podman run --pod` of its containers. As with a pod of Quadlet, the
/// pod becomes an app whose container only waits, and the others join it.
extension DockerRun {
    /// The image of a pod's own container, whose only purpose is to keep what the pod's containers share.
    static let pause = "registry.k8s.io/pause:3.10"

    /// Options of `podman pod create` that `podman run` does not have.
    private static let options: [String: PodmanOption] = {
        let shared = "the containers of a pod share its network, IPC and host name"
        var options: [String: PodmanOption] = [:]
        for name in ["infra-image", "infra-name"] { options[name] = PodmanOption(kind: .special, hasValue: true) }
        options["infra"] = PodmanOption(kind: .special, hasValue: false)
        options["share"] = PodmanOption(kind: .dropped(shared), hasValue: true)
        options["share-parent"] = PodmanOption(kind: .dropped("Torpor makes the cgroups"), hasValue: false)
        options["infra-command"] = PodmanOption(kind: .dropped("its image has one"), hasValue: true)
        options["exit-policy"] = PodmanOption(kind: .dropped("the pod runs until it is stopped"), hasValue: true)
        for name in ["infra-conmon-pidfile", "pod-id-file"] {
            options[name] = PodmanOption(kind: .dropped("Torpor follows the container itself"), hasValue: true)
        }
        return options
    }()

    /// The index of the first option; nil if the words are not a `podman pod create`.
    static func podStart(_ words: ArraySlice<ShellText.Word>) -> Int? {
        let texts = words.prefix(3).map(\.text)
        guard texts.count == 3, SourceTree.lastPart(texts[0]) == "podman", texts[1...] == ["pod", "create"] else {
            return nil
        }
        return words.startIndex + 3
    }

    static func readPod(
        _ words: [ShellText.Word],
        in folder: String,
        _ environment: [String: String],
        _ place: SourceLine,
        into program: inout ImportedProgram
    ) {
        let options = PodmanOptions(words.map(\.text), others: Self.options, letters: ["n": "name"])
        if let problem = options.problem {
            let word = words[problem.place]
            return program.cannot("\(problem.sentence) (column \(word.column))", at: SourceLine(word.line))
        }
        func last(_ name: String) -> String? { options.given.last { $0.name == name }?.value }
        guard let name = last("name") ?? options.rest.first, !name.isEmpty, !name.hasPrefix("-") else {
            return program.cannot("the pod has no name", at: place)
        }
        guard last("infra") != "false" else {
            return program.cannot("the pod has no container of its own, whose network others could join", at: place)
        }
        program.name = name
        program.isPod = true
        program["tags"] = .strings([name])
        program["restart"] = .string("on-failure")
        program["grace"] = .string("10s")
        let image = last("infra-image") ?? pause
        var container = ContainerOptions(folder: folder, variables: environment)
        container.add(options.without(["name", "infra", "infra-image", "infra-name"]), at: place, &program)
        container.argument("--ipc=shareable")
        if let own = last("infra-name") { container.add("name", own, shown: "--infra-name", at: place, &program) }
        container.finish(image: image, command: [], &program)
        program.remark(
            "its own container only waits, in the image \(image): an image with another program that waits will do"
        )
        let removal = ["podman", "pod", "rm", "--force", "--", name].map(ShellWords.quote).joined(separator: " ")
        program.remark("the pod \(name) must be gone before: ‘\(removal)’ removes it and its containers", at: place)
    }

    /// Makes the containers join their pods.
    static func joinPods(_ result: inout ImportedConfiguration) {
        var pods: Set<WireText> = []
        for program in result.programs where program.isPod && program.isTranslated {
            pods.insert(WireText(program.name))
        }
        for index in result.programs.indices {
            guard let pod = result.programs[index].pod else { continue }
            guard pods.contains(WireText(pod)) else {
                result.programs[index].cannot("it is in a pod, \(quoted(pod)), that no ‘podman pod create’ here makes")
                continue
            }
            result.programs[index].joined = pod
            result.programs[index].isInPod = true
            result.programs[index].requires.append(pod)
            result.programs[index]["tags"] = .strings([pod])
        }
    }
}

extension PodmanOptions {
    /// These options without those of these names.
    fileprivate func without(_ names: Set<String>) -> PodmanOptions {
        var others = self
        others.drop(names)
        return others
    }
}
