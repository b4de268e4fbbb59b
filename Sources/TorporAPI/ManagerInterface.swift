// SPDX-License-Identifier: Apache-2.0

/// The interface `io.torpor.Manager` in Varlink's own language, as the method `GetInterfaceDescription` returns it.
public enum ManagerInterface {
    /// The interface's name.
    public static let name = "io.torpor.Manager"

    /// The text of the interface (https://varlink.org/Interface-Definition).
    public static let description = [head, appTypes, reportTypes, appMethods, contentMethods, errors]
        .joined(separator: "\n")

    /// What the texts of all methods rely on.
    private static let head = """
        # Control of a Torpor supervisor and its apps.
        #
        # Times called "at" and "since" are microseconds since 1970; those called "_s" are seconds, "_ms" milliseconds.
        # "apps" takes exact names, globs (web@*), tag:NAME, and the name of an app with instances for all of them; at
        # most 64 of them may be other than exact names. "app" takes one exact name, or that of an app with one
        # instance. Absent values are null.
        interface io.torpor.Manager

        """

    /// The errors. ``ErrorName`` has their full names.
    private static let errors = """
        # The app does not exist; nearest is a similar name.
        error UnknownApp (name: string, nearest: ?string)

        # The app accepts no messages of the topic; message says what to do.
        error NotSubscribed (app: string, topic: string, message: string)

        # No app opens that; message says what to do.
        error NoHandler (url: string, message: string)

        # The app's mailbox is full; try again later.
        error MailboxFull (app: string, message: string)

        # The app is one of several machines, and this one does not own it.
        error NotOwned (app: string, message: string)

        # The caller must not do that; message says who may.
        error NotPermitted (message: string)

        # The call failed; message says why and what to do.
        error Failed (message: string)

        # The supervisor does not have the app's output, because it is in the journal; message says how to read it.
        error InJournal (app: string, journal: JournalPlace, message: string)

        # The configuration on disk is invalid, and nothing was changed.
        error InvalidConfiguration (diagnostics: []Diagnostic)

        """

    /// The names of the interface's errors.
    public enum ErrorName {
        /// There is no app of that name. Parameters: `name`, and `nearest`, an existing app with a similar name.
        public static let unknownApp = "io.torpor.Manager.UnknownApp"
        /// No app opens the URL or file.
        public static let noHandler = "io.torpor.Manager.NoHandler"
        /// The app does not accept the topic. Parameters: `app`, `topic`, `message`.
        public static let notSubscribed = "io.torpor.Manager.NotSubscribed"
        /// The app's mailbox is full. Parameters: `app`, `message`.
        public static let mailboxFull = "io.torpor.Manager.MailboxFull"
        /// This machine does not own the app. Parameters: `app`, `message`.
        public static let notOwned = "io.torpor.Manager.NotOwned"
        /// The user may not make the request. Parameters: `message`.
        public static let notPermitted = "io.torpor.Manager.NotPermitted"
        /// The request failed for another reason. Parameters: `message`.
        public static let failed = "io.torpor.Manager.Failed"
        /// The app's output is in systemd's journal, not in a log of torpord. Parameters: `app`, `journal`, `message`.
        public static let inJournal = "io.torpor.Manager.InJournal"
        /// The configuration is not valid. Parameters: `diagnostics`.
        public static let invalidConfiguration = "io.torpor.Manager.InvalidConfiguration"
    }
}
