//! The matching systems of the literature, each in a file of its own, for comparison and for differential tests.
//!
//! | name | system | file |
//! | --- | --- | --- |
//! | `naive`, `naive-rows` | a scan over coded predicates: no index, but a good layout | `naive.rs` |
//! | `counting` | Yan, Garcia-Molina 1994 | `counting.rs` |
//! | `enindex-letter` | Cui et al. 2016, algorithm 4 to the letter | `enindex.rs` |
//! | `enindex` | the same with colours, each predicate's truth found once | `truth_once/` |
//! | `ppsmtboad`, `ppsmtboad-parallel` | Zhang, Gao, Zeng | `ppsmtboad.rs` |
//! | `carzaniga` | Carzaniga, Rosenblum, Wolf 2001: SIENA's poset | `carzaniga.rs` |
//! | `k-index` | Whang et al. 2009 | `k_index.rs` |
//! | `be-tree` | Sadoghi, Jacobsen 2011 | `be_tree.rs` |
//! | `opindex` | Zhang, Chan, Tan 2014 | `opindex.rs` |
//! | `rein` | Qian et al. 2014 | `rein.rs` |
//! | `scan` | `enroute-matcher`'s naive scan, the truth | `matcher.rs` |
//! | `enroute` | `enroute-matcher`'s Enindex, which brokers use | `matcher.rs` |
//!
//! # What they share
//!
//! The papers know attributes with values of one kind and a few operators; here values are of four classes, and a
//! constraint may be any set of values, presence, or absence. So that each system is measured at what it is about:
//!
//! - Every attribute and class is a small number, a *slot*, and every value a 64-bit code that keeps the order
//!   (`code.rs`, `coded.rs`). An event is coded once, into an array by slot.
//! - A filter is a disjunction of conjunctions; each conjunction is indexed by itself, and a subscription reported
//!   once.
//! - What a system's paper cannot say is left out of the index, or widened to an interval that it can say. Then the
//!   events that fit the index are only candidates, and `Conjunction::matches` decides. The same holds for what no
//!   code says exactly: patterns, integers beyond 2^53, strings longer than seven bytes, sets of several classes.
//!   Each file's page names what else its system leaves to that check.
//!
//! ```
//! use enroute_baselines::{Engine, all};
//! use enroute_filter::{Event, Filter};
//! use enroute_matcher::SubscriptionId;
//!
//! let event = Event::builder().attribute("delay", 75).build().unwrap();
//! for mut engine in all() {
//!     engine.insert(SubscriptionId(1), &Filter::parse("delay >= 60").unwrap());
//!     let mut found = Vec::new();
//!     engine.matches(&event, &mut found);
//!     assert_eq!(found, [SubscriptionId(1)], "{}", engine.name());
//! }
//! ```

mod be_tree;
mod carzaniga;
mod code;
mod coded;
mod counting;
mod enindex;
mod indexed;
mod k_index;
mod matcher;
mod naive;
mod operators;
mod opindex;
mod ppsmtboad;
mod rein;
#[cfg(test)]
mod samples;
mod small;
mod sorted;
mod truth_once;
mod users;

use enroute_filter::{Event, Filter};
use enroute_matcher::{Enindex, NaiveScan, SubscriptionId};
use indexed::{Index, Indexed};
use matcher::Ours;

/// One face for all systems.
pub trait Engine {
    /// What the system is called on a command line.
    fn name(&self) -> &'static str;

    /// Adds a subscription; false, and nothing changes, if the id is there already.
    fn insert(&mut self, id: SubscriptionId, filter: &Filter) -> bool;

    /// Removes a subscription; false if there is none of this id.
    fn remove(&mut self, id: SubscriptionId) -> bool;

    /// The subscriptions that the event matches, each once, in any order, in place of what `out` held.
    fn matches(&mut self, event: &Event, out: &mut Vec<SubscriptionId>);

    /// How many subscriptions there are.
    fn len(&self) -> usize;

    /// Whether there is no subscription.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An estimate of the bytes in use. Linear in the subscriptions.
    fn memory_usage(&self) -> usize;
}

/// A new engine of every kind, the truth (`scan`) first.
pub fn all() -> Vec<Box<dyn Engine>> {
    vec![
        Box::new(Ours::<NaiveScan>::default()),
        Box::new(Ours::<Enindex>::default()),
        new::<naive::Naive<true>>(),
        new::<naive::Naive<false>>(),
        new::<counting::Counting>(),
        Box::new(truth_once::Enindex::default()),
        new::<enindex::Enindex>(),
        new::<ppsmtboad::Ppsmtboad<false>>(),
        new::<ppsmtboad::Ppsmtboad<true>>(),
        new::<carzaniga::Poset>(),
        new::<k_index::KIndex>(),
        new::<be_tree::BeTree>(),
        new::<opindex::OpIndex>(),
        new::<rein::Rein>(),
    ]
}

/// A new engine of the kind with this name.
pub fn engine(name: &str) -> Option<Box<dyn Engine>> {
    all().into_iter().find(|engine| engine.name() == name)
}

fn new<I: Index + 'static>() -> Box<dyn Engine> {
    Box::new(Indexed::<I>::default())
}
