//! The limits of filters and events.

/// Upper bounds on what is accepted; all configurable downward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {}

impl Default for Limits {
    fn default() -> Self {
        Limits {}
    }
}
