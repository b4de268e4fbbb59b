// SPDX-License-Identifier: Apache-2.0

/// The graphics cards of a service, in `gpus` or in `deploy.resources.reservations.devices`.
extension ComposeContainer {
    /// The devices of all graphics cards, as podman names them.
    func graphicsCards(_ program: inout ImportedProgram) -> [String] {
        var cards: [String] = []
        if let node = node["gpus"], let text = node.text, !text.isEmpty {
            cards = ContainerValues.graphicsCards(text)
            program.remark("gpus = \(text) \(ContainerValues.cardRemark)", at: node.place)
        }
        add(node["gpus"]?.list ?? [], called: "gpus", to: &cards, &program)
        let reserved = node["deploy"]?["resources"]?["reservations"]?["devices"]?.list ?? []
        add(reserved, called: "deploy.resources.reservations.devices", to: &cards, &program)
        return cards
    }

    private func add(
        _ requests: [DataNode],
        called name: String,
        to cards: inout [String],
        _ program: inout ImportedProgram
    ) {
        for request in requests {
            let abilities = (request["capabilities"]?.list ?? []).compactMap(\.text)
            guard ["nvidia", nil].contains(request["driver"]?.text), name == "gpus" || abilities.contains("gpu") else {
                program.remark("\(name) is left out: only nvidia's graphics cards are translated", at: request.place)
                continue
            }
            let identifiers = (request["device_ids"]?.list ?? []).compactMap(\.text)
            let value =
                identifiers.isEmpty ? request["count"]?.text ?? "all" : "device=" + identifiers.joined(separator: ",")
            cards += ContainerValues.graphicsCards(value)
            program.remark("\(name) \(ContainerValues.cardRemark)", at: request.place)
        }
    }
}
