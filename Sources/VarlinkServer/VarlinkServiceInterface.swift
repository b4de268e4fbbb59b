// SPDX-License-Identifier: Apache-2.0

import Varlink

/// `org.varlink.service`, which every Varlink service offers (https://varlink.org/Service).
struct VarlinkServiceInterface {
    static let name = "org.varlink.service"

    static let description = """
        # The interface that every Varlink service offers.
        interface org.varlink.service

        # Describes the service and lists its interfaces.
        method GetInfo() -> (
          vendor: string,
          product: string,
          version: string,
          url: string,
          interfaces: []string
        )

        # An interface in Varlink's own language.
        method GetInterfaceDescription(interface: string) -> (description: string)

        error InterfaceNotFound (interface: string)

        error MethodNotFound (method: string)

        error MethodNotImplemented (method: string)

        error InvalidParameter (parameter: string)

        error PermissionDenied ()

        error ExpectedMore ()

        """

    private let info: VarlinkServiceInfo
    private let interfaces: [VarlinkInterface]
    private let methods: [String: Set<String>]

    init(info: VarlinkServiceInfo, interfaces: [VarlinkInterface]) {
        self.info = info
        self.interfaces = [VarlinkInterface(name: Self.name, description: Self.description)] + interfaces
        methods = Dictionary(interfaces.map { ($0.name, $0.methods) }, uniquingKeysWith: { first, _ in first })
    }

    /// Answers calls of this interface and calls of unknown methods; false if the handler has to answer.
    func answer(_ call: VarlinkCall, _ reply: Reply) -> Bool {
        let interface = call.interface
        if interface == Self.name {
            answerOwn(call, reply)
            return true
        }
        guard let known = methods[interface] else {
            reply.fail(VarlinkErrorName.interfaceNotFound, ["interface": .string(interface)])
            return true
        }
        guard known.contains(call.member) else {
            reply.fail(VarlinkErrorName.methodNotFound, ["method": .string(call.method)])
            return true
        }
        return false
    }

    private func answerOwn(_ call: VarlinkCall, _ reply: Reply) {
        switch call.member {
        case "GetInfo":
            reply.send([
                "vendor": .string(info.vendor), "product": .string(info.product), "version": .string(info.version),
                "url": .string(info.url), "interfaces": .strings(interfaces.map(\.name)),
            ])
        case "GetInterfaceDescription":
            guard let name = call.parameters["interface"]?.stringValue else {
                return reply.fail(FieldError(field: "interface", problem: "must be a string"))
            }
            guard let interface = interfaces.first(where: { $0.name == name }) else {
                return reply.fail(VarlinkErrorName.interfaceNotFound, ["interface": .string(name)])
            }
            reply.send(["description": .string(interface.description)])
        default:
            reply.fail(VarlinkErrorName.methodNotFound, ["method": .string(call.method)])
        }
    }
}
