// SPDX-License-Identifier: Apache-2.0

import CommandLinePages

/// Finds words in the help pages. Hits are ranked: keys of the configuration first, then names of pages, headings, and
/// paragraphs.
struct HelpSearch {
    /// Where the words were found, from the most to the least relevant.
    private enum Rank: Int {
        case key, part, keyWords, name, heading, text

        /// The maximum number of hits of this rank that are shown.
        var most: Int {
            switch self {
            case .text: 10
            case .key, .heading: 4
            case .keyWords, .name: 3
            case .part: 2
            }
        }
    }

    /// A place in a page where one of the phrases was found.
    private struct Hit {
        let rank: Rank
        /// The index of the phrase that was found.
        let phrase: Int
        /// The position of the page in the order of pages: pages with lower numbers come first.
        let order: Int
        /// How well the place fits the phrase: higher scores come first.
        let score: Int
        let page: HelpPages.Page
        let heading: String
        let text: String

        static func precedes(_ left: Hit, _ right: Hit) -> Bool {
            // Compare by rank, then by phrase. For the same phrase, guides come before pages about Torpor's internals,
            // then better hits before worse ones.
            if left.rank != right.rank { return left.rank.rawValue < right.rank.rawValue }
            let pages = (left.order / HelpSearch.late, right.order / HelpSearch.late)
            return (left.phrase, pages.0, -left.score, left.order) < (right.phrase, pages.1, -right.score, right.order)
        }
    }

    private static let most = 10
    /// The maximum number of hits in headings and paragraphs that are shown from one page.
    private static let mostOfPage = 3
    /// The manual page of the configuration: the terms that it defines are the configuration's keys.
    private static let configuration = "man/torpor.toml.5"
    private static let first = [configuration, "lifecycle", "events", "apps", "memory", "man/torpor.1", "tutorial"]
    private static let last = [
        "internals", "performance", "architecture", "security", "interfaces", "comparison", "README", "pages",
    ]
    /// The position of pages that are not guides, such as those about internals: after all guides.
    private static let late = 1000

    /// The phrases to search for, each split into words.
    private let phrases: [[String]]
    private let pages: HelpPages
    private let columns: Int
    private var hits: [Hit] = []

    /// The hits for these phrases as text for a terminal; nil if there are none.
    ///
    /// - Parameter texts: the words of the user, then Torpor's own terms for the same thing.
    static func found(_ texts: [String], in pages: HelpPages, columns: Int) -> String? {
        var search = HelpSearch(texts.map(HelpText.words).filter { !$0.isEmpty }, in: pages, columns)
        guard !search.phrases.isEmpty else { return nil }
        pages.each { page, text in search.read(page, text) }
        let shown = search.chosen()
        return shown.isEmpty ? nil : shown.map(search.lines).joined()
    }

    private init(_ phrases: [[String]], in pages: HelpPages, _ columns: Int) {
        (self.phrases, self.pages, self.columns) = (phrases, pages, columns)
    }

    private func chosen() -> [Hit] {
        var ofRank: [Rank: Int] = [:]
        var ofPage: [String: Int] = [:]
        var shown: [Hit] = []
        for hit in hits.sorted(by: Hit.precedes) where shown.count < Self.most {
            guard ofRank[hit.rank, default: 0] < hit.rank.most else { continue }
            if hit.rank.rawValue >= Rank.heading.rawValue {
                guard ofPage[hit.page.name, default: 0] < Self.mostOfPage else { continue }
                ofPage[hit.page.name, default: 0] += 1
            }
            guard !shown.contains(where: { $0.page.name == hit.page.name && $0.text == hit.text }) else { continue }
            ofRank[hit.rank, default: 0] += 1
            shown.append(hit)
        }
        return shown
    }

    private func lines(_ hit: Hit) -> String {
        let command = "torpor help \(Help.name(of: hit.page, in: pages))"
        let heading = HelpText.excerpt(hit.heading, around: [], columns: max(8, columns - command.count - 2))
        // Only a paragraph is cut around the words. The text of a key, or below a heading, is cut at its end, because
        // it begins with the most important part.
        let around = hit.rank == .text ? phrases[hit.phrase] : []
        let text = HelpText.excerpt(hit.text, around: around, columns: columns - 4)
        return "\(Terminal.coloured(command, .bold))  \(heading)\n" + (text.isEmpty ? "" : "    \(text)\n")
    }

    // MARK: A page

    private mutating func read(_ page: HelpPages.Page, _ text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        var heading = ""
        var isTitle = true
        var at = 0
        while at < lines.count {
            let line = lines[at]
            at += 1
            if line.hasPrefix("```") {
                while at < lines.count, !lines[at].hasPrefix("```") { at += 1 }
                at += 1
            } else if line.hasPrefix("#") {
                heading = HelpText.plain(line.drop { $0 == "#" || $0 == " " })
                let next = lines[at...].first { !$0.isEmpty && !$0.hasPrefix("#") } ?? ""
                addHeading(page, heading, next.hasPrefix("|") ? "" : HelpText.plain(next), isTitle: isTitle)
                isTitle = false
            } else if line.hasPrefix("`"), at < lines.count, lines[at].hasPrefix(": ") {
                let said = lines[at...].prefix { $0.hasPrefix(": ") }
                at += said.count
                addTerm(page, heading, line, Array(said))
            } else if line.hasPrefix("|-") || line.hasPrefix("| -") || line.isEmpty {
                continue
            } else {
                addText(page, heading, line.drop { " -:|".contains($0) })
            }
        }
    }

    private mutating func add(
        _ rank: Rank,
        _ phrase: Int,
        _ page: HelpPages.Page,
        _ heading: String,
        _ text: String,
        score: Int = 0
    ) {
        let order = Self.first.firstIndex(of: page.name) ?? (Self.last.contains(page.name) ? Self.late : 100)
        let heading = Terminal.harmless(heading)
        hits.append(
            Hit(
                rank: rank,
                phrase: phrase,
                order: order,
                score: score,
                page: page,
                heading: heading,
                text: Terminal.harmless(text)
            )
        )
    }

    private mutating func addHeading(_ page: HelpPages.Page, _ heading: String, _ next: String, isTitle: Bool) {
        let words = HelpText.words(of: heading)
        let name = isTitle ? HelpText.words(of: page.title) : []
        for (number, phrase) in phrases.enumerated() {
            if isTitle, HelpText.place(of: phrase, in: name) != nil {
                return add(.name, number, page, heading, next, score: name.count == phrase.count ? 1 : 0)
            }
            guard HelpText.place(of: phrase, in: words) != nil else { continue }
            return add(.heading, number, page, heading, next, score: words.count == phrase.count ? 1 : 0)
        }
    }

    /// Adds a definition of a term. If the term is a key of the configuration, the hit ranks highest; otherwise it
    /// ranks like a heading.
    private mutating func addTerm(
        _ page: HelpPages.Page,
        _ heading: String,
        _ line: Substring,
        _ said: [Substring]
    ) {
        let term = HelpText.plain(line)
        let isKey = page.name == Self.configuration
        // For a key, skip the first line of the definition: it is the key's type, and the meaning follows.
        let meaning = said.count > 1 && isKey ? said.dropFirst() : said[...]
        let text = HelpText.plain(meaning.map { $0.dropFirst(2) }.joined(separator: " "))
        let words = HelpText.words(of: term)
        let parts = term.split(separator: ".").map(HelpText.words)
        for (number, phrase) in phrases.enumerated() {
            let rank: Rank? =
                if isKey, HelpText.isSame(words, as: phrase) {
                    .key
                } else if isKey, parts.contains(where: { HelpText.isSame($0, as: phrase) }) {
                    .part
                } else if !isKey || number == 0, HelpText.place(of: phrase, in: words) != nil {
                    isKey ? .keyWords : .heading
                } else {
                    nil
                }
            // Prefer a term that begins with the phrase: `ready.tcp` comes before `health.ready` for `ready`.
            if let rank {
                return add(rank, number, page, "\(term) (\(heading))", text, score: words.first == phrase.first ? 1 : 0)
            }
        }
        addText(page, "\(term) (\(heading))", text[...])
    }

    private mutating func addText(_ page: HelpPages.Page, _ heading: String, _ line: Substring) {
        let words = HelpText.words(of: line)
        for (number, phrase) in phrases.enumerated() {
            if let place = HelpText.place(of: phrase, in: words) {
                let again = HelpText.place(of: phrase, in: Array(words[(place + 1)...])) != nil
                let score = 4 + (place < 12 ? 2 : 0) + (again ? 1 : 0)
                return add(.text, number, page, heading, HelpText.plain(line), score: score)
            }
            // Also accept a paragraph that contains all words of the phrase, although they do not follow each other.
            guard phrase.count > 1 else { continue }
            if phrase.allSatisfy({ HelpText.place(of: [$0], in: words) != nil }) {
                return add(.text, number, page, heading, HelpText.plain(line))
            }
        }
    }
}
