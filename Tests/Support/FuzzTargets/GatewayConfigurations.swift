// SPDX-License-Identifier: Apache-2.0

import Configuration
import GatewayConfiguration

/// gateway.toml.
enum GatewayConfigurations: FuzzedParser {
    static let nanosecondsPerByte = 20_000

    static func run(_ bytes: [UInt8]) throws(Finding) {
        let system = Machine.system([bytes])
        switch GatewayLoader.load(path: Machine.path, environment: [:], system: system) {
        case .failure(let list): try expect(!list.diagnostics.isEmpty, "it is refused without a reason")
        case .success(let gateway):
            guard case .success(let again) = GatewayLoader.load(path: Machine.path, environment: [:], system: system)
            else { throw Finding("it is refused the second time") }
            try expect(again == gateway, "it is another one the second time")
            for broker in gateway.mqtt {
                try expect(BrokerAddress(broker.url) != nil, "\(broker.url) is no broker's address, and was taken")
            }
        }
    }
}
