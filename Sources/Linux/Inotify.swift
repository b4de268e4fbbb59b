import Glibc

/// News of a directory (inotify(7)).
public final class Inotify {
    /// To be watched for reading; `drain` takes what is there.
    public let descriptor: Descriptor

    /// One that watches nothing yet.
    public init() throws(Errno) {
        descriptor = Descriptor(owning: try call { inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK)) })
    }

    /// Tells when a name in the directory goes, or the directory itself.
    public func watchRemovals(of directory: String) throws(Errno) {
        let events = IN_DELETE | IN_DELETE_SELF | IN_MOVED_FROM | IN_MOVE_SELF | IN_ONLYDIR
        try call { inotify_add_watch(descriptor.raw, directory, UInt32(events)) }
    }

    /// Takes all news; which they are has to be looked for.
    public func drain() {
        while let bytes = try? Descriptor.read(descriptor.raw, maximum: 4096), !bytes.isEmpty {}
    }
}
