// SPDX-License-Identifier: Apache-2.0

import CKeeperProtocol

/// The state that a torpord whose keeper was lost passes on when it becomes the keeper itself
/// (torpor_keeper_resume.h): held descriptors, and the number of torpord instances.
public struct ResumeState: Sendable {
    /// How many torpord instances were started so far; the new keeper continues to count from here.
    public var instance: UInt32
    /// The limit of open descriptors (RLIMIT_NOFILE) of apps, soft and hard; nil for this process's limit.
    public var appDescriptorLimit: (soft: UInt64, hard: UInt64)?
    /// Held descriptors by name. They must stay open across exec.
    public var held: [(name: String, descriptors: [Int32])]

    /// Memberwise initializer.
    public init(
        instance: UInt32,
        appDescriptorLimit: (soft: UInt64, hard: UInt64)?,
        held: [(name: String, descriptors: [Int32])]
    ) {
        self.instance = instance
        self.appDescriptorLimit = appDescriptorLimit
        self.held = held
    }

    /// Encodes the state in the keeper's format. Names without descriptors, and names that the keeper would refuse
    /// (empty, too long, containing a NUL), are omitted.
    public func encoded() -> [UInt8] {
        let fitting = held.filter {
            !$0.name.isEmpty && $0.name.utf8.count <= KeeperProtocol.heldNameLimit && !$0.name.utf8.contains(0)
                && !$0.descriptors.isEmpty
        }
        var rest: [UInt8] = []
        for (name, descriptors) in fitting {
            let head = torpor_keeper_resume_name(
                count: UInt32(descriptors.count),
                length: UInt32(name.utf8.count),
                parked_count: 0,
                parked_number: 0,
                remove: 0
            )
            rest += bytes(head) + name.utf8
            for descriptor in descriptors { rest += bytes(descriptor) }
        }
        var head = torpor_keeper_resume()
        head.magic = TORPOR_KEEPER_RESUME_MAGIC
        head.version = TORPOR_KEEPER_RESUME_VERSION
        head.head_bytes = UInt32(MemoryLayout<torpor_keeper_resume>.size)
        head.writer = -1
        head.instance = instance
        head.table = -1
        head.image = -1
        head.process_bytes = UInt32(MemoryLayout<torpor_keeper_resume_process>.size)
        head.name_count = UInt32(fitting.count)
        head.total_bytes = UInt64(MemoryLayout<torpor_keeper_resume>.size + rest.count)
        head.app_nofile_soft = appDescriptorLimit?.soft ?? 0
        head.app_nofile_hard = appDescriptorLimit?.hard ?? 0
        withUnsafeMutableBytes(of: &head.inherited) { inherited in
            for index in inherited.indices { inherited[index] = 0xff }  // -1: none
        }
        return bytes(head) + rest
    }
}
