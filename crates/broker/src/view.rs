//! The view of what others want, and whether it is complete.
//!
//! It is complete when the present scope has been told and every reachable broker has answered it, none is still starting, and
//! none is about to become reachable (a link to it is up, or listed by its other end alone). While another scope is still to be
//! told, it can be complete for an event all the same: one within the scope that was told. Who has not answered is kept up to
//! date, broker by broker: this is asked with each publication, and much of it changes with each record and each answer.

use crate::BrokerId;
use crate::broker::Broker;
use enroute_filter::Event;
use std::collections::BTreeSet;

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// The reachable brokers that have not said what they want of the present scope, or are still starting. Empty where nobody
    /// publishes, and in a leaf broker.
    silent: BTreeSet<BrokerId>,
    /// Brokers that publications are not held up for any more, until they answer.
    overdue: BTreeSet<BrokerId>,
    /// Whether answers are waited for, and whether any are missing at all; none if it has to be found out anew.
    missing: Option<(bool, bool)>,
}

impl View {
    /// Nothing is known of a broker any more.
    pub(crate) fn forget(&mut self, broker: BrokerId) {
        self.overdue.remove(&broker);
    }
}

impl Broker {
    /// The reachable brokers that have not said what they want of the present scope, or are still starting, and those about to
    /// be reachable. For a leaf broker it is the uplink while it has no lease, or itself while it has none with a path.
    ///
    /// O(these), and O(all brokers) where nobody publishes: of a scope that has not been told nobody says anything.
    pub(crate) fn unanswered(&self) -> BTreeSet<BrokerId> {
        if let Some(uplink) = &self.uplink {
            let above = uplink.path().first().copied().unwrap_or(self.identity.id);
            return if self.is_leased() { BTreeSet::new() } else { BTreeSet::from([above]) };
        }
        let mut unanswered =
            if self.scope.is_nobody() { self.topology.reachable().collect() } else { self.view.silent.clone() };
        unanswered.extend(self.coming());
        debug_assert_eq!(unanswered, self.unanswered_by_search());
        unanswered
    }

    /// What [`Broker::unanswered`] must be, found by looking through all.
    fn unanswered_by_search(&self) -> BTreeSet<BrokerId> {
        let listed = self.topology.link_states().filter(|(_, in_reach)| *in_reach);
        let listed = listed.flat_map(|(record, _)| record.links.iter().map(|link| link.neighbour));
        let coming = self.links.neighbours().chain(listed);
        let coming = coming.filter(|&broker| broker != self.identity.id && self.topology.route(broker).is_none());
        self.topology.reachable().filter(|&broker| !self.has_answered(broker)).chain(coming).collect()
    }

    /// Whether a broker is not starting and has answered the present scope.
    fn has_answered(&self, broker: BrokerId) -> bool {
        let starting = self.topology.link_state(broker).is_some_and(|record| record.starting);
        !starting && self.remote.answered(broker, self.scope.version())
    }

    /// The brokers about to be reachable; some perhaps more than once.
    fn coming(&self) -> impl Iterator<Item = BrokerId> {
        let linked = self.links.neighbours().filter(|&neighbour| self.topology.route(neighbour).is_none());
        linked.chain(self.topology.about_to_be_reachable())
    }

    /// Whether every reachable broker has said what it wants of all that may be published here.
    pub(crate) fn view_is_complete(&mut self) -> bool {
        !self.scope.is_pending() && !self.judge_answers().1
    }

    /// Whether every reachable broker has said whether it wants an event.
    pub(crate) fn view_is_complete_for(&mut self, event: &Event) -> bool {
        self.is_told_of(event) && !self.judge_answers().1
    }

    /// Whether an event waits neither for a scope to be told nor for any answer.
    pub(crate) fn may_publish_now(&mut self, event: &Event) -> bool {
        self.is_told_of(event) && !self.waits_for_answers()
    }

    /// Whether others know that an event may be published here: it is within the scope that was told, or that is the present one.
    fn is_told_of(&self, event: &Event) -> bool {
        !self.scope.is_pending() || self.has_event_in_scope(event)
    }

    /// Whether answers to the scope that was told are waited for.
    pub(crate) fn waits_for_answers(&mut self) -> bool {
        self.judge_answers().0
    }

    /// Whether answers to the scope that was told are waited for, and whether any are missing at all.
    fn judge_answers(&mut self) -> (bool, bool) {
        if let Some(missing) = self.view.missing {
            return missing;
        }
        let missing = if self.view.overdue.is_empty() && self.uplink.is_none() {
            let any = !self.is_all_answered();
            (any, any)
        } else {
            let unanswered = self.unanswered();
            self.view.overdue.retain(|broker| unanswered.contains(broker));
            // A leaf broker without a path to the core goes on without one.
            let waits_for = |broker: &BrokerId| !self.view.overdue.contains(broker) && *broker != self.identity.id;
            (unanswered.iter().any(waits_for), !unanswered.is_empty())
        };
        // Of what nobody publishes here nobody is asked; an event comes all the same if a leaf below has kept it for long.
        let waits = missing.0 && !self.scope.is_nobody();
        let missing = (self.starting || waits, self.starting || missing.1);
        self.view.missing = Some(missing);
        missing
    }

    /// Whether nobody is unanswered, in a core broker.
    fn is_all_answered(&self) -> bool {
        let silent = match self.scope.is_nobody() {
            true => self.topology.reachable().next().is_some(),
            false => !self.view.silent.is_empty(),
        };
        let all = !silent && self.coming().next().is_none();
        debug_assert_eq!(all, self.unanswered().is_empty());
        all
    }

    /// The publications that wait have waited long enough: whoever has been asked and has not answered is not waited for any more.
    pub(crate) fn wait_for_none_of_the_unanswered(&mut self) {
        self.view.overdue = if self.scope.is_nobody() { BTreeSet::new() } else { self.unanswered() };
        self.view.missing = None;
    }

    /// Something has changed that the completeness of the view depends on, but no broker's answer.
    pub(crate) fn view_changed(&mut self) {
        self.view.missing = None;
        self.unsettled.view = true;
    }

    /// A broker's answer, or whether it can be reached or is starting, may have changed.
    pub(crate) fn view_changed_by(&mut self, broker: BrokerId) {
        if self.keeps_the_silent() && self.topology.route(broker).is_some() && !self.has_answered(broker) {
            self.view.silent.insert(broker);
        } else {
            self.view.silent.remove(&broker);
        }
        self.view_changed();
    }

    /// The own scope is another one: all have to answer.
    pub(crate) fn view_changed_throughout(&mut self) {
        self.view.silent.clear();
        if self.keeps_the_silent() {
            self.view.silent = self.topology.reachable().filter(|&broker| !self.has_answered(broker)).collect();
        }
        self.view_changed();
    }

    fn keeps_the_silent(&self) -> bool {
        self.uplink.is_none() && !self.scope.is_nobody()
    }
}
