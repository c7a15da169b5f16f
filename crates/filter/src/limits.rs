//! The limits of filters and events: one place for all of them, configurable downward only.

use serde::{Deserialize, Serialize};

/// Something that is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The text of a filter, in bytes.
    FilterText,
    /// Tokens in the text of a filter.
    Tokens,
    /// Parentheses open at once in a filter; objects open at once in JSON.
    Nesting,
    /// Values of one `IN`.
    InValues,
    /// Conjunctions of a filter after normalisation.
    Conjunctions,
    /// Patterns of a filter after normalisation, those of LIKE, SUFFIX and CONTAINS.
    Patterns,
    /// The canonical form of a filter, in bytes.
    FilterBytes,
    /// Attributes of an event.
    Attributes,
    /// Attribute data of an event in bytes: names, values and their table, all but header and payload.
    AttributeData,
    /// The name of an attribute, in bytes.
    AttributeName,
    /// The payload of an event, in bytes.
    Payload,
}

impl Limit {
    /// Every limit.
    pub const ALL: [Limit; 11] = [
        Limit::FilterText,
        Limit::Tokens,
        Limit::Nesting,
        Limit::InValues,
        Limit::Conjunctions,
        Limit::Patterns,
        Limit::FilterBytes,
        Limit::Attributes,
        Limit::AttributeData,
        Limit::AttributeName,
        Limit::Payload,
    ];

    /// The default maximum, which is also the highest that can be configured.
    pub const fn default_maximum(self) -> usize {
        match self {
            Limit::FilterText => 16 * 1024,
            Limit::Tokens => 1_000,
            Limit::Nesting => 64,
            Limit::InValues => 1_000,
            Limit::Conjunctions => 256,
            Limit::Patterns => 512,
            Limit::FilterBytes => 64 * 1024,
            Limit::Attributes => 256,
            Limit::AttributeData => 64 * 1024,
            Limit::AttributeName => 255,
            Limit::Payload => 1024 * 1024,
        }
    }

    /// The limit's name in configurations and machine-readable errors, such as `filter_text`.
    pub const fn name(self) -> &'static str {
        match self {
            Limit::FilterText => "filter_text",
            Limit::Tokens => "tokens",
            Limit::Nesting => "nesting",
            Limit::InValues => "in_values",
            Limit::Conjunctions => "conjunctions",
            Limit::Patterns => "patterns",
            Limit::FilterBytes => "filter_bytes",
            Limit::Attributes => "attributes",
            Limit::AttributeData => "attribute_data",
            Limit::AttributeName => "attribute_name",
            Limit::Payload => "payload",
        }
    }

    /// What is counted, for people.
    const fn description(self) -> &'static str {
        match self {
            Limit::FilterText => "bytes of filter text",
            Limit::Tokens => "tokens in a filter",
            Limit::Nesting => "levels of nesting",
            Limit::InValues => "values in an IN",
            Limit::Conjunctions => "conjunctions after normalisation",
            Limit::Patterns => "patterns after normalisation",
            Limit::FilterBytes => "bytes of a filter's canonical form",
            Limit::Attributes => "attributes in an event",
            Limit::AttributeData => "bytes of attribute data in an event",
            Limit::AttributeName => "bytes in an attribute name",
            Limit::Payload => "bytes of payload",
        }
    }
}

/// A bound was passed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("limit {} exceeded: {found} {}, at most {maximum} allowed", .limit.name(), .limit.description())]
pub struct LimitExceeded {
    /// Which bound.
    pub limit: Limit,
    /// How much there was, as far as was counted: work stops at the first excess.
    pub found: usize,
    /// How much is allowed.
    pub maximum: usize,
}

/// Upper bounds on what is accepted. The defaults are the highest; each can be lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    maxima: [usize; Limit::ALL.len()],
}

impl Default for Limits {
    fn default() -> Self {
        Limits { maxima: Limit::ALL.map(Limit::default_maximum) }
    }
}

impl Limits {
    /// Lowers one limit; a maximum above the present one changes nothing.
    #[must_use]
    pub fn lowered(mut self, limit: Limit, maximum: usize) -> Limits {
        let present = &mut self.maxima[limit as usize];
        *present = maximum.min(*present);
        self
    }

    /// What is allowed.
    pub fn maximum(&self, limit: Limit) -> usize {
        self.maxima[limit as usize]
    }

    /// Compares what there is with what is allowed.
    ///
    /// # Errors
    /// If there is more.
    pub fn check(&self, limit: Limit, found: usize) -> Result<(), LimitExceeded> {
        let maximum = self.maximum(limit);
        if found <= maximum { Ok(()) } else { Err(LimitExceeded { limit, found, maximum }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_go_down_but_never_up() {
        for limit in Limit::ALL {
            let default = limit.default_maximum();
            assert_eq!(Limits::default().lowered(limit, default + 1), Limits::default());
            let limits = Limits::default().lowered(limit, 1);
            assert_eq!(limits.maximum(limit), 1);
            assert_eq!(limits.check(limit, 1), Ok(()));
            let excess = limits.check(limit, 2).unwrap_err();
            assert_eq!(excess, LimitExceeded { limit, found: 2, maximum: 1 });
            assert!(excess.to_string().contains(limit.name()), "{excess}");
        }
    }

    #[test]
    fn names_are_those_of_the_configuration() {
        for limit in Limit::ALL {
            assert_eq!(serde_json::to_string(&limit).unwrap(), format!("\"{}\"", limit.name()));
        }
    }
}
