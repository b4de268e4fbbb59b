// SPDX-License-Identifier: Apache-2.0

/// The keys that podman-systemd.unit(5) has, each with a value that means something, and the options of docker-run(1) and
/// podman-run(1).
enum ContainerKeys {
    static let container = """
        AddCapability=CAP
        AddDevice=/dev/foo
        AddHost=example.com:192.168.10.11
        Annotation=x=y
        AutoUpdate=registry
        CgroupsMode=no-conmon
        ContainerName=name
        ContainersConfModule=/etc/nvd.conf
        DNS=192.168.55.1
        DNSOption=ndots:1
        DNSSearch=example.com
        DropCapability=CAP
        Entrypoint=/foo.sh
        Environment=foo=bar
        EnvironmentFile=/tmp/env
        EnvironmentHost=true
        Exec=/usr/bin/command
        ExposeHostPort=50-59
        GIDMap=0:10000:10
        GlobalArgs=--log-level=debug
        GroupAdd=keep-groups
        HealthCmd=/usr/bin/command
        HealthLogDestination=/foo/log
        HealthMaxLogCount=5
        HealthMaxLogSize=500
        HealthOnFailure=kill
        HealthStartupCmd=command
        HealthStartupInterval=1m
        HealthStartupRetries=8
        HealthStartupSuccess=2
        HealthStartupTimeout=1m33s
        HostName=example.com
        HttpProxy=false
        IP=192.5.0.1
        IP6=2001:db8::1
        Label=x=y
        LogDriver=journald
        LogOpt=path=/var/log/mykube.json
        Mask=/proc/sys/foo:/proc/sys/bar
        Memory=20g
        Mount=type=bind,source=/a,target=/b
        Network=host
        NetworkAlias=name
        NoNewPrivileges=true
        Notify=true
        PidsLimit=10000
        Pod=pod-name
        PodmanArgs=--publish 8080:80
        PublishPort=8080:80
        Pull=never
        ReadOnly=true
        ReadOnlyTmpfs=false
        ReloadCmd=/usr/bin/command
        ReloadSignal=SIGHUP
        Retry=5
        RetryDelay=5s
        Rootfs=/var/lib/rootfs
        RunInit=true
        SeccompProfile=/tmp/s.json
        Secret=key
        SecurityLabelDisable=true
        SecurityLabelFileType=usr_t
        SecurityLabelLevel=s0:c1,c2
        SecurityLabelNested=true
        SecurityLabelType=spc_t
        ShmSize=100m
        StopSignal=SIGINT
        StopTimeout=20
        SubGIDMap=gtest
        SubUIDMap=utest
        Sysctl=name=value
        Timezone=local
        Tmpfs=/work
        UIDMap=0:10000:10
        Ulimit=nofile=1000:10000
        Unmask=ALL
        User=bin
        UserNS=keep-id:uid=200,gid=210
        Volume=/source:/dest
        WorkingDir=/home
        AppArmor=unconfined
        VolatileTmp=true
        RemapUsers=auto
        """

    static let pod = """
        AddHost=example.com:192.168.10.11
        ContainersConfModule=/etc/nvd.conf
        DNS=192.168.55.1
        DNSOption=ndots:1
        DNSSearch=example.com
        ExitPolicy=stop
        GIDMap=0:10000:10
        GlobalArgs=--log-level=debug
        HostName=name
        IP=192.5.0.1
        IP6=2001:db8::1
        Label=x=y
        Network=host
        NetworkAlias=name
        PodmanArgs=--cpus=2
        PodName=name
        PublishPort=8080:80
        ShmSize=100m
        SubGIDMap=gtest
        SubUIDMap=utest
        UIDMap=0:10000:10
        UserNS=keep-id:uid=200,gid=210
        Volume=/source:/dest
        StopTimeout=3
        """

    static let network = """
        ContainersConfModule=/etc/nvd.conf
        DisableDNS=true
        DNS=192.168.55.1
        Driver=bridge
        Gateway=192.168.55.3
        GlobalArgs=--log-level=debug
        InterfaceName=enp1
        Internal=true
        IPAMDriver=dhcp
        IPRange=192.168.55.128/25
        IPv6=true
        Label=x=y
        NetworkDeleteOnStop=true
        Options=isolate=true
        PodmanArgs=--dns=192.168.55.1
        Subnet=192.5.0.0/16
        """

    static let volume = """
        ContainersConfModule=/etc/nvd.conf
        Copy=true
        Device=tmpfs
        Driver=image
        GlobalArgs=--log-level=debug
        Label=x=y
        Options=XYZ
        PodmanArgs=--driver=image
        Type=type
        User=123
        Image=quay.io/centos/centos:latest
        """

    /// Options with a value.
    static let valued = """
        add-host annotation arch attach authfile blkio-weight blkio-weight-device cap-add cap-drop cert-dir \
        cgroup-conf cgroup-parent cgroupns cgroups chrootdirs cidfile conmon-pidfile cpu-count cpu-percent \
        cpu-period cpu-quota cpu-rt-period cpu-rt-runtime cpu-shares cpus cpuset-cpus cpuset-mems creds \
        decryption-key detach-keys device device-cgroup-rule device-read-bps device-read-iops \
        device-write-bps device-write-iops dns dns-option dns-search domainname entrypoint env env-file \
        env-merge expose gidmap gpus group-add group-entry health-cmd health-interval health-log-destination \
        health-max-log-count health-max-log-size health-on-failure health-retries health-start-interval \
        health-start-period health-startup-cmd health-startup-interval health-startup-retries \
        health-startup-success health-startup-timeout health-timeout hostname hosts-file hostuser \
        image-volume init-path io-maxbandwidth io-maxiops ip ip6 ipc isolation kernel-memory label label-file \
        link link-local-ip log-driver log-opt mac-address memory memory-reservation memory-swap \
        memory-swappiness mount network network-alias oom-score-adj os passwd-entry personality pid pidfile \
        pids-limit platform pod pod-id-file preserve-fd preserve-fds publish pull rdt-class requires restart \
        retry retry-delay runtime sdnotify seccomp-policy secret security-opt shm-size shm-size-systemd \
        stop-signal stop-timeout storage-opt subgidname subuidname sysctl systemd timeout tmpfs tz uidmap \
        ulimit umask unsetenv user userns uts variant volume volume-driver volumes-from workdir
        """

    /// Options without one, but for those that change nothing for an app.
    static let flags = """
        disable-content-trust env-host http-proxy init interactive no-healthcheck no-hosts oom-kill-disable \
        passwd privileged publish-all read-only read-only-tmpfs rmi rootfs tls-verify tty unsetenv-all \
        use-api-socket no-hostname
        """
}
