// SPDX-License-Identifier: Apache-2.0

/// Images of which is known which program runs where a service says only options. Official images put it in front of a
/// command that begins with "-"; for the others it is the entry point. Sources: the images' own documentation and
/// Dockerfiles.
enum ComposeImages {
    private static let programs = [
        "alertmanager": "alertmanager", "caddy": "caddy", "consul": "consul", "etcd": "etcd", "haproxy": "haproxy",
        "influxdb": "influxd", "loki": "loki", "mariadb": "mariadbd", "memcached": "memcached", "mongo": "mongod",
        "mysql": "mysqld", "nats": "nats-server", "node-exporter": "node_exporter", "postgres": "postgres",
        "prometheus": "prometheus", "promtail": "promtail", "pushgateway": "pushgateway", "redis": "redis-server",
        "registry": "registry", "traefik": "traefik", "valkey": "valkey-server", "vault": "vault",
    ]

    /// Who publishes them.
    private static let publishers: Set = [
        "", "library", "docker.io", "docker.io/library", "docker.io/prom", "docker.io/grafana", "prom",
        "quay.io/prometheus",
        "grafana", "quay.io/coreos", "hashicorp", "traefik", "valkey", "docker.io/valkey",
    ]

    /// The program of an image such as `docker.io/library/mysql:8.0`; nil for one that is not known.
    static func program(of image: String) -> String? {
        let parts = image.prefix { $0 != "@" }.split(separator: "/")
        guard let last = parts.last, let name = last.split(separator: ":").first else { return nil }
        guard publishers.contains(parts.dropLast().joined(separator: "/")) else { return nil }
        return programs[String(name)]
    }
}
