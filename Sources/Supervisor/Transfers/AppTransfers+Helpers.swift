// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Processes
import TransferProtocol
import Transfers

/// Starts and watches helpers (torpor-transfer processes), one for each app with a running transfer, and ends helpers
/// without transfers.
extension AppTransfers {
    private static let idleTime = Duration.seconds(2)

    func startHelper(of app: AppRuntime) {
        let name = app.name
        guard starting.insert(name).inserted else { return }
        findFacts(for: app) { [weak self, weak app] facts in
            guard let self else { return }
            self.starting.remove(name)
            guard let app else { return self.startAgain(name) }
            guard !self.isEnding, self.coordinator.id(of: name) != nil else { return }
            guard !self.queue.running(of: name).isEmpty else { return self.sweepParts(of: name) }
            do throws(LaunchError) {
                let facts = try facts.get()
                self.supervisor.launcher.adopt(facts.account, of: app)
                try self.launch(app, self.parts(of: name), facts)
            } catch {
                self.lost(name, "cannot be started: \(error)")
            }
        }
    }

    /// Starts a helper (a torpor-transfer process) for the app that now has this name. Called if the app that had the
    /// name before was removed while its helper was being prepared.
    func startAgain(_ name: String) {
        guard let id = coordinator.id(of: name), !isEnding, helpers[name] == nil else { return }
        if !queue.running(of: name).isEmpty { startHelper(of: apps[id]) }
    }

    /// On a background thread, looks up the account that a helper needs, and makes the helper's folders. `completion`
    /// gets the result, or the reason why no helper can be started.
    func findFacts(
        for app: AppRuntime,
        _ completion: @escaping (Result<TransferHelper.Facts, LaunchError>) -> Void
    ) {
        let name = app.name
        let place = parts(of: name)
        let feeds = feedsPlace(of: name)
        let known = queue.ids(of: name)
        let (names, ofRun) = (Account.Names(app.specification), supervisor.launcher.accountOfRun(app))
        let (rule, state) = (
            supervisor.configuration.supervisor.transfers.minFree,
            supervisor.runtime.state
        )
        disk.ask { () -> Result<TransferHelper.Facts, LaunchError> in
            do throws(LaunchError) {
                let account = try Account.find(names, known: ofRun)
                let owner = DataPlace.Owner(account)
                do throws(Errno) {
                    _ = try place.makeFolder(for: owner, TreeWork())
                    _ = try feeds.makeFolder(for: owner, TreeWork())
                } catch {
                    throw LaunchError("cannot make the folder \(place.path) for \(owner.name): \(error)")
                }
                place.removeParts { !known.contains($0) }
                let total = (try? FilesystemSpace(of: state))?.total ?? 0
                return .success(
                    TransferHelper.Facts(account: account, minimumFree: Int64(clamping: rule.bytes(of: total)))
                )
            } catch {
                return .failure(error)
            }
        } _: { facts in
            completion(facts)
        }
    }

    /// The path of torpor-transfer, which is in a package of its own.
    static func program() throws(LaunchError) -> String {
        guard let program = ThisProcess.companion("torpor-transfer", variable: "TORPOR_TRANSFER") else {
            throw LaunchError(
                "torpor-transfer is neither beside torpord nor in ../libexec/torpor: install the package torpor-transfer"
            )
        }
        return program
    }

    private func launch(_ app: AppRuntime, _ place: DataPlace, _ facts: TransferHelper.Facts) throws(LaunchError) {
        let program = try Self.program()
        let name = app.name
        let manner = manner(of: app)
        var plan = supervisor.launcher.companionPlan(program, Self.arguments(place, manner), of: name)
        let profile = app.specification.profile(in: .background)
        plan.oomScoreAdjust = min(max(profile.oomScoreAdjust, ProcessTree.inheritedOOMScore), 1000)
        plan.user = Launcher.credentials(facts.account)
        let group = CgroupTree.transfers(of: name)
        let cgroup = supervisor.launcher.companionCgroup(group, for: "the transfers of \(name)")
        plan.cgroup = cgroup?.directory.raw
        let helper = TransferHelper(
            of: name,
            manner,
            minimumFree: facts.minimumFree,
            profile,
            cgroup: cgroup?.path,
            supervisor,
            callbacks(of: name)
        )
        helper.start(plan)
        withExtendedLifetime(cgroup) {}
        helpers[name] = helper
        processes.begun()
        shareRate()
        for id in queue.running(of: name) {
            if let transfer = queue[id] { helper.send(.start(order(transfer, app, helper))) }
        }
    }

    static func arguments(_ place: DataPlace, _ manner: TransferHelper.Manner) -> [String] {
        ["torpor-transfer", "--parts", place.path] + manner.arguments
    }

    func callbacks(of name: String) -> TransferHelper.Callbacks {
        TransferHelper.Callbacks(
            report: { [weak self] report in self?.take(report, of: name) },
            ended: { [weak self] why in self?.lost(name, why) },
            gone: { [weak self] cgroup in self?.gone(name, cgroup) }
        )
    }

    /// Called when a helper (a torpor-transfer process) has ended. Removes its cgroup, unless the app has another
    /// helper by now.
    func gone(_ name: String, _ cgroup: String?) {
        if helpers[name] == nil, let cgroup { try? supervisor.place.cgroups?.remove(cgroup) }
        processes.gone()
    }

    /// Ends all helpers (torpor-transfer processes) when torpord ends and no other torpord follows. Returns true if all
    /// helpers have ended, or if torpord has waited long enough for that. If false, the shutdown continues when they
    /// have ended.
    func endAll() -> Bool {
        endHelpers()
        return processes.areGone()
    }

    /// The account of an app's helper, and the files that it may use.
    func manner(of app: AppRuntime) -> TransferHelper.Manner {
        var arguments: [String] = []
        for folder in folders(of: app) { arguments += ["--root", folder] }
        // Always pass the folder for subscriptions, so that the helper need not be replaced when the app gets its first
        // subscription. Pass it last, so that the indices of the other folders stay the same.
        arguments += ["--root", feedsPlace(of: app.name).path]
        for path in Set(app.specification.transfers.authorities.values).sorted() { arguments += ["--read", path] }
        return TransferHelper.Manner(arguments: arguments, account: Account.Names(app.specification))
    }

    /// The folders in which files of the app's transfers may be. Relative file names are names in the first folder.
    func folders(of app: AppRuntime) -> [String] {
        let state = supervisor.savedStates.stateDirectory(of: app)
        guard app.specification.data.isWanted else { return [state] }
        let place = supervisor.dataFolders.place(of: app)
        return [state] + [DataPlace.Part.documents, .library, .caches].map(place.path)
    }

    /// Called when a helper (a torpor-transfer process) has ended or could not be started. Its transfers are retried.
    /// `why` is nil if the helper is being replaced.
    func lost(_ name: String, _ why: String?) {
        helpers[name] = nil
        idle[name]?.cancel()
        idle[name] = nil
        sweepParts(of: name)
        let ids = queue.running(of: name)
        shareRate()
        guard !ids.isEmpty else { return schedule() }
        guard let why else {
            // The helper is being replaced: queue its transfers for the new helper.
            for id in ids {
                heard[id] = nil
                queue.set(id, .queued)
            }
            return schedule()
        }
        let failures = failedStarts[name, default: 0] + 1
        failedStarts[name] = failures
        if let id = coordinator.id(of: name) {
            note(apps[id], .transfer, text: "has its transfers retried: torpor-transfer \(why)", level: .warning)
        }
        for id in ids {
            heard[id] = nil
            queue.update(id) { $0.failures += 1 }
            let delay = RetryDelay.microseconds(
                failures: max(failures, queue[id]?.failures ?? 1),
                asked: nil,
                chance: .random(in: 0...1)
            )
            queue.set(id, .waiting(.retry, until: Clock.realtimeMicroseconds() + delay))
            save(id)
        }
        schedule()
    }

    func endHelper(of name: String) {
        if let found = found.removeValue(forKey: name) {
            found.end()
            supervisor.release(DescriptorName.transfers(name))
        }
        helpers.removeValue(forKey: name)?.dismiss()
        idle.removeValue(forKey: name)?.cancel()
        shareRate()
    }

    /// Called when the helper has sent a report, which shows that it works: resets the count of failed starts.
    func works(_ name: String) { failedStarts[name] = nil }

    /// Ends the helper of an app (a torpor-transfer process) after a while if it has no transfer then.
    func restIfIdle(_ name: String) {
        guard hasNothingToDo(name) else { return }
        if idle[name] == nil { idle[name] = try? loop.timer { [weak self] in self?.goIfIdle(name) } }
        idle[name]?.arm(after: Self.idleTime)
    }

    private func hasNothingToDo(_ name: String) -> Bool {
        guard let helper = helpers[name] else { return false }
        // An adopted helper that has not reported yet may be running any of the app's transfers.
        return helper.isUnheard ? queue.count(of: name) == 0 : queue.running(of: name).isEmpty
    }

    private func goIfIdle(_ name: String) {
        guard hasNothingToDo(name) else { return }
        endHelper(of: name)
        // Remove the files of transfers that have ended: the helper may have been killed before torpord could tell it
        // to remove them.
        sweepParts(of: name)
    }

    /// Gives each helper an equal part of the configured transfer rate.
    func shareRate() {
        guard let rate = supervisor.configuration.supervisor.transfers.rate, !helpers.isEmpty else { return }
        let part = max(1, Int64(clamping: rate) / Int64(helpers.count))
        for helper in helpers.values { helper.send(.rate(part)) }
    }
}
