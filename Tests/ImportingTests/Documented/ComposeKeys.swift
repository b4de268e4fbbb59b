// SPDX-License-Identifier: Apache-2.0

/// The keys that the compose specification has, each with a value that means something.
enum ComposeKeys {
    /// Of a service, as lines of YAML; the key is what stands before the first colon.
    static let service = """
        annotations: [a=b]
        attach: false
        build: .
        blkio_config: {weight: 300}
        cap_add: [ALL]
        cap_drop: [NET_ADMIN]
        cgroup: host
        cgroup_parent: m
        command: other
        configs: [c]
        container_name: c
        cpu_count: 2
        cpu_percent: 50
        cpu_period: 1000
        cpu_quota: 500
        cpu_rt_period: 400ms
        cpu_rt_runtime: 95000
        cpu_shares: 512
        cpus: 0.5
        cpuset: 0-3
        credential_spec: {file: x.json}
        depends_on: [db]
        deploy: {replicas: 2}
        develop: {watch: []}
        device_cgroup_rules: [c 1:3 mr]
        devices: [/dev/ttyUSB0]
        dns: 8.8.8.8
        dns_opt: [use-vc]
        dns_search: example.com
        domainname: x
        driver_opts: {a: b}
        entrypoint: /entry
        env_file: a.env
        environment: {A: b}
        expose: ["3000"]
        extends: base
        external_links: [x]
        extra_hosts: ["a=1.2.3.4"]
        gpus: all
        group_add: [mail]
        healthcheck: {test: [CMD, probe]}
        hostname: h
        image: redis
        init: true
        ipc: host
        isolation: default
        label_file: l
        labels: {a: b}
        links: [db]
        logging: {driver: syslog}
        mac_address: 02:42:ac:11:65:43
        mem_limit: 512m
        mem_reservation: 256m
        mem_swappiness: 10
        memswap_limit: 1g
        models: [m]
        network_mode: host
        networks: [n]
        oom_kill_disable: true
        oom_score_adj: 100
        pid: host
        pids_limit: 10
        platform: linux/amd64
        ports: ["80:80"]
        post_start: [{command: x}]
        pre_stop: [{command: x}]
        privileged: true
        profiles: [p]
        provider: {type: x}
        pull_policy: always
        read_only: true
        restart: always
        runtime: runc
        scale: 2
        secrets: [s]
        security_opt: [x]
        shm_size: 1g
        stdin_open: true
        stop_grace_period: 20s
        stop_signal: SIGINT
        storage_opt: {size: 1G}
        sysctls: {a: b}
        tmpfs: /run
        tty: true
        ulimits: {nofile: 10}
        use_api_socket: true
        user: "33"
        userns_mode: host
        uts: host
        volumes: [a:/a]
        volumes_from: [a]
        working_dir: /srv
        """

    /// Of tables within a service: the key, what its table has without it, and with it.
    static let inner: [(key: String, without: String, with: String)] = [
        ("endpoint_mode", "deploy: {}", "deploy: {endpoint_mode: vip}"),
        ("labels", "deploy: {}", "deploy: {labels: {a: b}}"), ("mode", "deploy: {}", "deploy: {mode: global}"),
        ("placement", "deploy: {}", "deploy: {placement: {constraints: [x]}}"),
        ("replicas", "deploy: {}", "deploy: {replicas: 3}"),
        ("rollback_config", "deploy: {}", "deploy: {rollback_config: {parallelism: 1}}"),
        ("update_config", "deploy: {}", "deploy: {update_config: {parallelism: 1}}"),
        ("memory", "deploy: {}", "deploy: {resources: {limits: {memory: 1G}}}"),
        ("cpus", "deploy: {}", "deploy: {resources: {limits: {cpus: '0.5'}}}"),
        ("pids", "deploy: {}", "deploy: {resources: {limits: {pids: 5}}}"),
        ("reservations", "deploy: {}", "deploy: {resources: {reservations: {memory: 1G}}}"),
        ("condition", "deploy: {}", "deploy: {restart_policy: {condition: any}}"),
        (
            "delay", "deploy: {restart_policy: {condition: any}}",
            "deploy: {restart_policy: {condition: any, delay: 5s}}"
        ),
        (
            "max_attempts", "deploy: {restart_policy: {condition: any}}",
            "deploy: {restart_policy: {condition: any, max_attempts: 3}}"
        ),
        (
            "window", "deploy: {restart_policy: {condition: any}}",
            "deploy: {restart_policy: {condition: any, window: 2min}}"
        ),
        ("interval", "healthcheck: {test: x}", "healthcheck: {test: x, interval: 500ms}"),
        ("timeout", "healthcheck: {test: x}", "healthcheck: {test: x, timeout: 3s}"),
        ("retries", "healthcheck: {test: x}", "healthcheck: {test: x, retries: 9}"),
        ("start_period", "healthcheck: {test: x}", "healthcheck: {test: x, start_period: 20s}"),
        ("start_interval", "healthcheck: {test: x}", "healthcheck: {test: x, start_interval: 2s}"),
        ("disable", "healthcheck: {test: x}", "healthcheck: {test: x, disable: true}"),
        ("required", "env_file: [{path: a}]", "env_file: [{path: a, required: false}]"),
        ("format", "env_file: [{path: a}]", "env_file: [{path: a, format: raw}]"),
        (
            "condition", "depends_on: {db: {condition: service_started}}",
            "depends_on: {db: {condition: service_completed_successfully}}"
        ),
        ("required", "depends_on: {db: {}}", "depends_on: {db: {required: false}}"),
        ("restart", "depends_on: {db: {}}", "depends_on: {db: {restart: true}}"),
    ]

    /// Beside `services`.
    static let others = """
        version: "3"
        name: shop
        include: [other.yaml]
        networks: {a: {}}
        volumes: {a: {}}
        configs: {a: {}}
        secrets: {a: {}}
        models: {a: {}}
        """
}
