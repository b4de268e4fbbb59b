// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// The podman container that an app runs in.
public struct ContainerInfo: Hashable, Sendable {
    /// The container's name in podman.
    public var name: String
    /// The container's image, as written in the configuration.
    public var image: String
    /// The digest of the image in use, `sha256:…`; nil while the container does not run, or if the digest is unknown.
    public var digest: String?
    /// The container's published ports, as written in the configuration.
    public var ports: [String] = []
    /// The networks that the container is connected to.
    public var networks: [String] = []

    /// A container that has not been started.
    public init(name: String, image: String) { (self.name, self.image) = (name, image) }

    static func optional(_ fields: Fields, _ name: String) throws(FieldError) -> ContainerInfo? {
        guard let json = fields[name], !json.isNull else { return nil }
        return try ContainerInfo(json: json)
    }

    private init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        name = try fields.string("name")
        image = try fields.string("image")
        digest = try fields.optionalString("digest")
        ports = try fields.strings("ports")
        networks = try fields.strings("networks")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "name": .string(name), "image": .string(image), "digest": .optional(digest), "ports": .strings(ports),
            "networks": .strings(networks),
        ]
    }
}
