extension Cgroup {
    /// Where the v2 hierarchy is mounted, looked up once.
    public static let mount = mountPoint()
}
