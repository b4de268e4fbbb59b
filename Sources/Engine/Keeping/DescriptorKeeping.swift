// SPDX-License-Identifier: Apache-2.0

/// Gives descriptors to the keeper, where the next torpord finds them, under a ``DescriptorName``.
package protocol DescriptorKeeping: AnyObject {
    /// Gives a copy of one descriptor to the keeper; it replaces what has that name.
    func hold(_ name: String, _ descriptor: Int32)
    /// Gives copies of several descriptors to the keeper; they replace what has that name or are added to it.
    func hold(_ name: String, _ descriptors: [Int32], replacing: Bool)
    /// Tells the keeper to close what has that name.
    func release(_ name: String)
    /// What an earlier torpord left in the keeper.
    var inheritance: InheritedDescriptors { get }
    /// Whether another torpord ran under this keeper before.
    var isSuccessor: Bool { get }
}
