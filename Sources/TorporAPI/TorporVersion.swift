/// Torpor's version, from which the programs and the Debian package take theirs (`packaging/deb/build`).
public enum TorporVersion {
    /// As `torpord --version` and `torpor --version` have it.
    public static let text = "0.1.0"
}
