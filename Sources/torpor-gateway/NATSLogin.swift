// SPDX-License-Identifier: Apache-2.0

import CNATS
import Gateway
import GatewayConfiguration

/// How the gateway authenticates itself to a NATS server, and the server to the gateway.
struct NATSLogin: Sendable {
    private let broker: GatewayBroker
    private let password: String?
    private let token: String?
    /// The file with the private key of the certificate.
    private let key: String?

    /// Reads the secrets from their files. Throws a sentence that describes the error.
    init(_ broker: GatewayBroker, _ secrets: Secrets) throws(Secrets.Problem) {
        self.broker = broker
        password = try broker.password.map { name throws(Secrets.Problem) in try secrets.text(name) }
        token = try broker.token.map { name throws(Secrets.Problem) in try secrets.text(name) }
        key = broker.key.map(secrets.path)
    }

    /// Sets the options of a connection. Returns the library's status for each.
    func set(_ options: OpaquePointer) -> [natsStatus] {
        var steps = [natsOptions_SetURL(options, broker.url), natsOptions_SetName(options, "torpor-gateway")]
        if let user = broker.user { steps.append(natsOptions_SetUserInfo(options, user, password)) }
        if let token { steps.append(natsOptions_SetToken(options, token)) }
        if let credentials = broker.credentials {
            steps.append(natsOptions_SetUserCredentialsFromFiles(options, credentials, nil))
        }
        if broker.url.hasPrefix("tls:") { steps.append(natsOptions_SetSecure(options, true)) }
        if let file = broker.authorities { steps.append(natsOptions_LoadCATrustedCertificates(options, file)) }
        if let certificate = broker.certificate, let key {
            steps.append(natsOptions_LoadCertificatesChain(options, certificate, key))
        }
        return steps
    }
}
