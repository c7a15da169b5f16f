//! The naive scan of `enroute-matcher` behind the face of this crate.

use crate::Engine;
use enroute_filter::{Event, Filter};
use enroute_matcher::{NaiveScan, Owner, Scratch, SubscriptionId};

/// The scan with the scratch it is matched with.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    engine: NaiveScan,
    scratch: Scratch,
}

impl Engine for Scan {
    fn name(&self) -> &'static str {
        "scan"
    }

    fn insert(&mut self, id: SubscriptionId, filter: &Filter) -> bool {
        self.engine.insert(id, Owner(0), filter)
    }

    fn remove(&mut self, id: SubscriptionId) -> bool {
        self.engine.remove(id)
    }

    fn matches(&mut self, event: &Event, out: &mut Vec<SubscriptionId>) {
        self.engine.matches(event, &mut self.scratch, out);
    }

    fn len(&self) -> usize {
        self.engine.len()
    }

    fn memory_usage(&self) -> usize {
        self.engine.memory_usage()
    }
}
