//! The engines of `enroute-matcher` behind the face of this crate.

use crate::Engine;
use enroute_filter::{Event, Filter};
use enroute_matcher::{Enindex, NaiveScan, Owner, Scratch, SubscriptionId};

/// An engine with the scratch it is matched with.
#[derive(Debug, Default)]
pub(crate) struct Ours<E> {
    engine: E,
    scratch: Scratch,
}

macro_rules! engine {
    ($($engine:ident = $name:literal),*) => {$(
        impl Engine for Ours<$engine> {
            fn name(&self) -> &'static str {
                $name
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
    )*};
}

engine!(NaiveScan = "scan", Enindex = "enroute");
