// SPDX-License-Identifier: Apache-2.0

package import Recovery

extension RecoveryFile {
    /// Whether the torpord that wrote the file was ending all apps.
    package var isShuttingDown: Bool {
        get { flags & 1 != 0 }
        set { flags = newValue ? flags | 1 : flags & ~1 }
    }

    /// Whether the next torpord must read the configuration on disk instead of the one in force, because a user who
    /// restarts the service expects edits to take effect.
    package var readsConfiguration: Bool {
        get { flags & 8 != 0 }
        set { flags = newValue ? flags | 8 : flags & ~8 }
    }

    /// Whether the configuration on disk was invalid when it was last read.
    package var isDiskInvalid: Bool {
        get { flags & 32 != 0 }
        set { flags = newValue ? flags | 32 : flags & ~32 }
    }

    /// Whether the followed session was unlocked at least once since the boot.
    var wasUnlocked: Bool {
        get { flags & 16 != 0 }
        set { flags = newValue ? flags | 16 : flags & ~16 }
    }

    /// Whether an earlier supervisor was killed while it ended its apps. If so, apps that are found running are ended.
    var endsWhatIsFound: Bool {
        get { flags & 4 != 0 }
        set { flags = newValue ? flags | 4 : flags & ~4 }
    }

    /// Whether the records have odd tokens in the form of this version (``TakenTokens``).
    var hasWholeTokens: Bool {
        get { flags & 4096 != 0 }
        set { flags = newValue ? flags | 4096 : flags & ~4096 }
    }

    /// Whether the runtime directory is being repaired. If torpord dies during the repair, the next torpord must check
    /// all files in it.
    var isBeingRepaired: Bool {
        get { flags & 64 != 0 }
        set { flags = newValue ? flags | 64 : flags & ~64 }
    }
}
