//! The engines, behind one face that keeps all but their own work outside of what is timed.

use crate::workload::Kind;
use enroute_baselines::Engine;
use enroute_filter::{Event, Filter};
use enroute_matcher::SubscriptionId;

/// An engine under measurement. [`load`](Contender::load) and [`prepare`](Contender::prepare) turn inputs into what the
/// engine takes; they are not timed.
pub trait Contender {
    /// Takes the next subscriptions, in place of those before, without inserting any. An empty batch frees them.
    fn load(&mut self, batch: Vec<(SubscriptionId, Filter)>);
    /// Inserts the subscription at this place of the batch.
    fn insert(&mut self, index: usize);
    /// Removes a subscription.
    fn remove(&mut self, id: SubscriptionId);
    /// Takes the events, once all subscriptions are in.
    fn prepare(&mut self, events: &[Event]);
    /// Puts the subscriptions that the event at this place matches into `out`, in any order, in place of what it held.
    fn matches(&mut self, event: usize, out: &mut Vec<SubscriptionId>);
    /// Whether the engine can still match once something was removed.
    fn survives_removal(&self) -> bool {
        true
    }
}

/// The production engine.
pub const ENROUTE: &str = "enroute";
/// The scan that the others have to beat.
pub const NAIVE: &str = "naive";
/// The plainest scan, which is right by definition.
pub const SCAN: &str = "scan";
/// The peer.
pub const A_TREE: &str = "a-tree";

/// The engines that can be measured, by the names of the command line.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = enroute_baselines::all().into_iter().map(|engine| engine.name()).collect();
    if cfg!(feature = "a-tree") {
        names.push(A_TREE);
    }
    names
}

/// An engine, empty; `None` for a name that is not among [`names`]. `attributes` is for those that must know them beforehand.
pub fn open(name: &str, attributes: &[(String, Kind)]) -> Option<Box<dyn Contender>> {
    #[cfg(feature = "a-tree")]
    if name == A_TREE {
        return Some(Box::new(crate::atree::ATreePeer::new(attributes)));
    }
    // Nobody else must know them.
    let _ = attributes;
    let engine = enroute_baselines::engine(name)?;
    Some(Box::new(Direct { engine, batch: Vec::new(), events: Vec::new() }))
}

/// An engine that takes filters and events as they are.
struct Direct {
    engine: Box<dyn Engine>,
    batch: Vec<(SubscriptionId, Filter)>,
    events: Vec<Event>,
}

impl Contender for Direct {
    fn load(&mut self, batch: Vec<(SubscriptionId, Filter)>) {
        self.batch = batch;
    }

    fn insert(&mut self, index: usize) {
        let (id, filter) = &self.batch[index];
        assert!(self.engine.insert(*id, filter), "each subscription is inserted once");
    }

    fn remove(&mut self, id: SubscriptionId) {
        assert!(self.engine.remove(id), "only what is there is removed");
    }

    fn prepare(&mut self, events: &[Event]) {
        self.events = events.to_vec();
    }

    fn matches(&mut self, event: usize, out: &mut Vec<SubscriptionId>) {
        self.engine.matches(&self.events[event], out);
    }
}
