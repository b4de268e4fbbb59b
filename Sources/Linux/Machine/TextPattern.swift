// SPDX-License-Identifier: Apache-2.0

/// An extended regular expression (regex(7)) that must match a whole text, byte by byte as in the C locale.
///
/// The syntax is that of regcomp(3), without back-references and word boundaries. regexec(3) is not used: for some
/// patterns its time grows much faster than the length of the text, and the text may come from untrusted sources. This
/// type follows all paths through the pattern at the same time (Thompson's algorithm), so the number of steps is at
/// most the number of instructions times the length of the text (``mostSteps(on:)``).
public struct TextPattern: Sendable {
    /// An instruction of the compiled pattern. After `take`, `atStart` and `atEnd`, the match continues with the next
    /// instruction in the list.
    fileprivate enum Instruction: Sendable {
        case take(ByteSet)
        case split(Int, Int)
        case jump(Int)
        case atStart
        case atEnd
        case accept
    }

    /// The maximum size of a pattern: the number of characters after each repetition is written out, so that `a{3}`
    /// counts as 3.
    public static let most = 1024

    private let instructions: [Instruction]
    /// The length of the longest text that can match, in bytes; nil if there is no limit.
    private let longest: Int?

    /// Compiles the pattern; nil if the pattern is invalid or too large.
    public init?(_ pattern: String) {
        guard !pattern.utf8.contains(0) else { return nil }
        do throws(TextPatternParser.Invalid) {
            let part = try TextPatternParser.parse(pattern)
            var compiler = Compiler()
            try compiler.write(part)
            compiler.instructions.append(.accept)
            instructions = compiler.instructions
            longest = part.longest
        } catch {
            return nil
        }
    }

    /// Whether the whole text matches.
    public func fits(_ text: String) -> Bool { match(text).fits }

    /// The maximum number of steps to match a text of at most this many bytes. A step takes a few nanoseconds.
    public func mostSteps(on bytes: Int) -> Int { instructions.count * (min(bytes, longest ?? bytes) + 1) }

    /// The length in bytes up to which matching a text takes at most this many steps.
    public func length(within steps: Int) -> Int { max(steps / instructions.count - 1, 0) }

    /// Whether the whole text matches, and how many steps the match took.
    public func match(_ text: String) -> (fits: Bool, steps: Int) {
        let bytes = Array(text.utf8)
        if let longest, bytes.count > longest { return (false, 0) }
        var run = Run(instructions, length: bytes.count)
        run.follow(0, at: 0)
        for (index, byte) in bytes.enumerated() {
            guard run.take(byte, to: index + 1) else { return (false, run.steps) }
        }
        return (run.acceptedAt == bytes.count, run.steps)
    }

    /// Writes the instructions of a pattern. A repetition is written out as repeated instructions.
    private struct Compiler {
        var instructions: [Instruction] = []
        private var taken = 0
        private var parts = 0

        mutating func write(_ part: TextPatternPart) throws(TextPatternParser.Invalid) {
            // Limit the number of parts too, because a repetition of an empty part adds no instructions but takes time.
            parts += 1
            guard parts <= 8 * TextPattern.most else { throw TextPatternParser.Invalid() }
            switch part {
            case .take(let set):
                taken += 1
                guard taken <= TextPattern.most else { throw TextPatternParser.Invalid() }
                _ = try add(.take(set))
            case .atStart: _ = try add(.atStart)
            case .atEnd: _ = try add(.atEnd)
            case .sequence(let parts): for part in parts { try write(part) }
            case .choice(let branches):
                var jumps: [Int] = []
                for branch in branches.dropLast() {
                    let split = try add(.accept)
                    try write(branch)
                    jumps.append(try add(.accept))
                    instructions[split] = .split(split + 1, instructions.count)
                }
                if let last = branches.last { try write(last) }
                for jump in jumps { instructions[jump] = .jump(instructions.count) }
            case .repeated(let part, let least, let most): try write(part, least, most)
            }
        }

        private mutating func write(
            _ part: TextPatternPart,
            _ least: Int,
            _ most: Int?
        ) throws(TextPatternParser.Invalid) {
            for _ in 0..<least { try write(part) }
            guard let most else {
                let split = try add(.accept)
                try write(part)
                _ = try add(.jump(split))
                instructions[split] = .split(split + 1, instructions.count)
                return
            }
            var splits: [Int] = []
            for _ in least..<most {
                splits.append(try add(.accept))
                try write(part)
            }
            for split in splits { instructions[split] = .split(split + 1, instructions.count) }
        }

        /// Adds an instruction and returns its index. `accept` serves as a placeholder for a `split` or `jump` whose
        /// target the caller sets later.
        private mutating func add(_ instruction: Instruction) throws(TextPatternParser.Invalid) -> Int {
            guard instructions.count < 4 * TextPattern.most else { throw TextPatternParser.Invalid() }
            instructions.append(instruction)
            return instructions.count - 1
        }
    }

    /// A match in progress.
    private struct Run {
        private let instructions: [Instruction]
        private let length: Int
        /// The `take` instructions that may consume the next byte.
        private var waiting: [Int] = []
        private var before: [Int] = []
        /// For each instruction, the last position in the text at which it was reached. An instruction is followed only
        /// once at each position.
        private var reachedAt: [Int]
        private var stack: [Int] = []
        private(set) var acceptedAt = -1
        private(set) var steps = 0

        init(_ instructions: [Instruction], length: Int) {
            self.instructions = instructions
            self.length = length
            reachedAt = [Int](repeating: -1, count: instructions.count)
        }

        /// Consumes a byte. `place` is the number of bytes consumed including this byte. Returns false if no
        /// instruction accepts the byte.
        mutating func take(_ byte: UInt8, to place: Int) -> Bool {
            swap(&waiting, &before)
            waiting.removeAll(keepingCapacity: true)
            var isTaken = false
            for index in before {
                guard case .take(let set) = instructions[index], set.contains(byte) else { continue }
                isTaken = true
                follow(index + 1, at: place)
            }
            return isTaken
        }

        /// Follows all instructions that consume no byte, starting from `first`.
        mutating func follow(_ first: Int, at place: Int) {
            stack.append(first)
            while let index = stack.popLast() {
                guard reachedAt[index] != place else { continue }
                reachedAt[index] = place
                steps += 1
                switch instructions[index] {
                case .take: waiting.append(index)
                case .split(let one, let other):
                    stack.append(other)
                    stack.append(one)
                case .jump(let target): stack.append(target)
                case .atStart: if place == 0 { stack.append(index + 1) }
                case .atEnd: if place == length { stack.append(index + 1) }
                case .accept: acceptedAt = place
                }
            }
        }
    }
}
