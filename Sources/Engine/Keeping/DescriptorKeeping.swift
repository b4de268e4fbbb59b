// SPDX-License-Identifier: Apache-2.0

/// Gives descriptors to torpor-keeper, each under a ``DescriptorName``, for the next torpord.
package protocol DescriptorKeeping: AnyObject {
    /// Gives a copy of one descriptor to torpor-keeper under a name. torpor-keeper closes the descriptors that it held
    /// under this name before.
    func hold(_ name: String, _ descriptor: Int32)
    /// Gives copies of several descriptors to torpor-keeper. If `replacing` is true, torpor-keeper closes the
    /// descriptors that it held under that name before.
    func hold(_ name: String, _ descriptors: [Int32], replacing: Bool)
    /// Makes torpor-keeper close the descriptors that it holds under that name.
    func release(_ name: String)
    /// The descriptors that an earlier torpord left in the keeper.
    var inheritance: InheritedDescriptors { get }
    /// Whether another torpord ran under this keeper before.
    var isSuccessor: Bool { get }
}
