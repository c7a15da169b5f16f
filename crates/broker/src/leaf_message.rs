//! What a leaf broker and its parent say to each other.

use crate::{BrokerId, Interest, Scope};
use serde::{Deserialize, Serialize};

/// Brokers on a path from a leaf broker to the core: leaves may hang off leaves so deep.
pub const MAX_PATH: usize = 16;

/// A message on the link between a leaf broker and its parent, in order and without loss while the link lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeafMessage {
    /// The leaf, first: take me in.
    Attach(Attach),
    /// The parent: my path to the core, myself first and the core broker last, as an answer to [`LeafMessage::Attach`] and
    /// whenever it changes; empty while I have none.
    Path(Vec<BrokerId>),
    /// The leaf: what it and all below it want. The parent: what all others want of what the leaf may publish.
    Interest(Interest),
    /// The other end holds a step of the interest, and so do all beyond it that it concerns.
    Held {
        /// The version of the step.
        step: u64,
        /// At how many brokers beyond it is in force; a leaf does not say.
        brokers: u32,
        /// Brokers beyond that have not acknowledged it in time.
        missing: Vec<BrokerId>,
    },
    /// The leaf: what its clients and those below it may publish.
    Scope {
        /// Counts the scopes of the leaf.
        version: u64,
        /// The scope.
        scope: Scope,
    },
    /// The leaf, which holds what others want: may I rely on it?
    Renew {
        /// Counts these.
        number: u64,
    },
    /// The parent: what you hold is all, and I shall tell nobody that a subscription is in force before you hold it, until
    /// this has run out.
    Lease {
        /// The number of the question that is answered.
        number: u64,
        /// How long it lasts from the time that the question was sent, in microseconds.
        lasts_us: u64,
    },
    /// The parent: do not rely on what you hold until the next lease.
    Revoke,
    /// A leaf has moved: towards its old parent.
    Detach(Detach),
}

/// A leaf broker asks to be taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attach {
    /// Counts the attachments of this life of the leaf: a later one voids all before.
    pub epoch: u64,
    /// The path of the attachment before, the old parent first; empty if there was none.
    pub previous: Vec<BrokerId>,
    /// Filters that the leaf can hold of what others want; if there are more it is told "anything".
    pub table: u32,
}

/// A leaf broker has a new parent: who still has it below drops it. Travels to the old parent along the old path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detach {
    /// The leaf.
    pub leaf: BrokerId,
    /// Its incarnation.
    pub incarnation: u64,
    /// Its present attachment.
    pub epoch: u64,
    /// The old path: the old parent first, its core broker last.
    pub path: Vec<BrokerId>,
}
