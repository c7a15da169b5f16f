//! One face for all engines.

use enroute_filter::{Event, Filter};
use enroute_matcher::{Enindex, NaiveScan, Owner, Scratch, SubscriptionId};

pub(crate) trait Engine {
    fn name(&self) -> &'static str;
    fn insert(&mut self, id: SubscriptionId, owner: Owner, filter: &Filter) -> bool;
    fn remove(&mut self, id: SubscriptionId) -> bool;
    fn matches(&self, event: &Event, scratch: &mut Scratch, out: &mut Vec<SubscriptionId>);
    fn interested(&self, event: &Event, scratch: &mut Scratch, out: &mut Vec<Owner>);
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool;
    fn contains(&self, id: SubscriptionId) -> bool;
    fn memory_usage(&self) -> usize;
}

macro_rules! engine {
    ($($engine:ident),*) => {$(
        impl Engine for $engine {
            fn name(&self) -> &'static str {
                stringify!($engine)
            }
            fn insert(&mut self, id: SubscriptionId, owner: Owner, filter: &Filter) -> bool {
                self.insert(id, owner, filter)
            }
            fn remove(&mut self, id: SubscriptionId) -> bool {
                self.remove(id)
            }
            fn matches(&self, event: &Event, scratch: &mut Scratch, out: &mut Vec<SubscriptionId>) {
                self.matches(event, scratch, out);
                out.sort_unstable();
            }
            fn interested(&self, event: &Event, scratch: &mut Scratch, out: &mut Vec<Owner>) {
                self.interested(event, scratch, out);
            }
            fn len(&self) -> usize {
                self.len()
            }
            fn is_empty(&self) -> bool {
                self.is_empty()
            }
            fn contains(&self, id: SubscriptionId) -> bool {
                self.contains(id)
            }
            fn memory_usage(&self) -> usize {
                self.memory_usage()
            }
        }
    )*};
}

engine!(NaiveScan, Enindex);

/// A new engine of every kind.
pub(crate) fn engines() -> Vec<Box<dyn Engine>> {
    vec![Box::new(NaiveScan::new()), Box::new(Enindex::new())]
}
