// SPDX-License-Identifier: Apache-2.0

/// The programs of well-known images, for services whose command contains only options. In official images, the
/// entrypoint puts the program before a command that begins with "-". In other images, the program itself is the
/// entrypoint. Sources: the images' documentation and Dockerfiles.
enum ComposeImages {
    private static let programs = [
        "alertmanager": "alertmanager", "caddy": "caddy", "consul": "consul", "etcd": "etcd", "haproxy": "haproxy",
        "influxdb": "influxd", "loki": "loki", "mariadb": "mariadbd", "memcached": "memcached", "mongo": "mongod",
        "mysql": "mysqld", "nats": "nats-server", "node-exporter": "node_exporter", "postgres": "postgres",
        "prometheus": "prometheus", "promtail": "promtail", "pushgateway": "pushgateway", "redis": "redis-server",
        "registry": "registry", "traefik": "traefik", "valkey": "valkey-server", "vault": "vault",
    ]

    /// The registries and organisations that publish these images. An image of the same name from elsewhere may contain
    /// another program.
    private static let publishers: Set = [
        "", "library", "docker.io", "docker.io/library", "docker.io/prom", "docker.io/grafana", "prom",
        "quay.io/prometheus",
        "grafana", "quay.io/coreos", "hashicorp", "traefik", "valkey", "docker.io/valkey",
    ]

    /// The program of an image such as `docker.io/library/mysql:8.0`; nil if the image is not known.
    static func program(of image: String) -> String? {
        let parts = image.prefix { $0 != "@" }.split(separator: "/")
        guard let last = parts.last, let name = last.split(separator: ":").first else { return nil }
        guard publishers.contains(parts.dropLast().joined(separator: "/")) else { return nil }
        return programs[String(name)]
    }
}
