// SPDX-License-Identifier: Apache-2.0

/// Reads `cover`, `cover_after` and `launch_image`.
enum CoverReader {
    @Sendable static func command(_ context: Context, _ node: Node) -> [String]? {
        guard let words = Read.command(context, node) else { return nil }
        if words.isEmpty { return words }
        let places = words.dropFirst().count { $0 == OpenPlaceholder.file }
        guard words.first != OpenPlaceholder.file, places == 1 else {
            context.error(
                places > 1
                    ? "has \(places) places for the picture: write %f once"
                    : "has no place for the picture: write \"%f\" (its path) as an argument after the program",
                at: node.position
            )
            return nil
        }
        return words
    }

    /// Warns if `cover_after` or `launch_image` is written without `cover`.
    static func check(_ draft: AppDraft) {
        guard draft.specification.presentation.cover.command.isEmpty, draft.origins["cover"] == nil else { return }
        for key in ["cover_after", "launch_image"] where draft.origins[key] != nil {
            draft.warning(key, "does nothing without cover")
        }
    }
}
