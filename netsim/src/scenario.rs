//! Scenarios: what to build and what to do to it, in TOML.

use crate::leaf::Leaves;
use crate::link::LinkSettings;
use crate::step::Step;
use crate::topology::Topology;
use crate::traffic::Domain;
use enroute_broker::Config;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A network and a list of steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it shows, in a line.
    #[serde(default)]
    pub name: String,
    /// Everything random comes from this; the command line may give another one.
    #[serde(default)]
    pub seed: u64,
    /// Brokers and links.
    pub topology: Topology,
    /// Leaf brokers below these, drawn from the seed.
    #[serde(default)]
    pub leaves: Option<Leaves>,
    /// Leaf brokers by name.
    #[serde(default, rename = "leaf", skip_serializing_if = "Vec::is_empty")]
    pub leaf_plans: Vec<LeafPlan>,
    /// Brokers that run from a copy of another's data directory. They are down until a step restarts them by name.
    #[serde(default, rename = "clone", skip_serializing_if = "Vec::is_empty")]
    pub clones: Vec<ClonePlan>,
    /// Properties of the links.
    #[serde(default)]
    pub links: LinkSettings,
    /// Times of the brokers that differ from the defaults.
    #[serde(default)]
    pub times: Times,
    /// Whether the core starts at rest, as a start from nothing would have left it, which is quicker for thousands of brokers.
    #[serde(default)]
    pub settled: bool,
    /// Whether brokers merge what they announce, without changing what matches.
    #[serde(default)]
    pub merge: bool,
    /// Clients that are there from the beginning.
    #[serde(default, rename = "client", skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<ClientPlan>,
    /// As many clients more on each broker, named after it (`b00-1`, …).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clients_per_broker: usize,
    /// What random subscriptions and events are about: three attributes of four values, if nothing else is said, so that about
    /// a dozen filters stand for however many subscriptions of a broker.
    #[serde(default)]
    pub domain: Domain,
    /// As many random subscriptions for each of these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub subscriptions_per_client: usize,
    /// Clients on brokers drawn from the seed.
    #[serde(default, rename = "audience", skip_serializing_if = "Vec::is_empty")]
    pub audiences: Vec<Audience>,
    /// So many brokers of the core, every second or tenth or whatever it takes, have one client more, named after it
    /// (`b00-publisher`), which may publish anything.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub publishers: usize,
    /// Whether some client publishes, in the very moment in which any subscription is answered, what that wants.
    #[serde(default)]
    pub publish_on_answers: bool,
    /// What to do, in order. All brokers are started before the first step.
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
    /// Where the file is: other files are found from there.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// Times of the brokers in milliseconds; see [`Config`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Times {
    pub starting_ms: Option<u64>,
    pub grace_ms: Option<u64>,
    pub publish_wait_ms: Option<u64>,
    pub subscribe_wait_ms: Option<u64>,
    pub unreachable_ms: Option<u64>,
    pub park_ms: Option<u64>,
    pub narrowing_ms: Option<u64>,
    pub coalesce_ms: Option<u64>,
    pub gather_ms: Option<u64>,
    pub resend_ms: Option<u64>,
    pub resend_max_ms: Option<u64>,
    /// Between signs of life of real brokers, which virtual time does without.
    pub keep_alive_ms: Option<u64>,
}

impl Times {
    /// A broker's configuration with these times.
    pub fn config(&self) -> Config {
        let mut config = Config::default();
        let set = |time: &mut Duration, milliseconds: Option<u64>| {
            if let Some(milliseconds) = milliseconds {
                *time = Duration::from_millis(milliseconds);
            }
        };
        set(&mut config.starting, self.starting_ms);
        set(&mut config.grace, self.grace_ms);
        set(&mut config.publish_wait, self.publish_wait_ms);
        set(&mut config.subscribe_wait, self.subscribe_wait_ms);
        set(&mut config.unreachable, self.unreachable_ms);
        set(&mut config.park, self.park_ms);
        set(&mut config.narrowing, self.narrowing_ms);
        set(&mut config.coalesce, self.coalesce_ms);
        set(&mut config.gather, self.gather_ms);
        set(&mut config.resend, self.resend_ms);
        set(&mut config.resend_max, self.resend_max_ms);
        config
    }
}

/// A leaf broker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeafPlan {
    /// Its name.
    pub name: String,
    /// Brokers that it may hang off, in the order in which it tries them.
    pub uplinks: Vec<String>,
}

/// A broker that runs from a copy of another's data directory: two that say they are the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClonePlan {
    /// What this scenario calls it.
    pub name: String,
    /// Whose identity it has.
    pub of: String,
    /// Brokers that it dials.
    pub links: Vec<String>,
}

/// A client of the beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientPlan {
    /// Its name.
    pub name: String,
    /// The broker it belongs to.
    pub broker: String,
    /// Its subscriptions: names and filters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub subscribe: BTreeMap<String, String>,
    /// Its advertisements: names and filters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub advertise: BTreeMap<String, String>,
}

/// So many clients, each on a core broker of its own, that want the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audience {
    /// How many brokers have one; no more than there are.
    pub brokers: usize,
    /// The filter.
    pub subscribe: String,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What is wrong with a scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{0}")]
    Read(std::io::Error),
    /// The file is no scenario.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// No brokers, or too many.
    #[error("there must be 1 to {limit} brokers, not {brokers}")]
    Brokers {
        /// How many were asked for.
        brokers: usize,
        /// How many there may be.
        limit: usize,
    },
    /// Numbers that do not fit.
    #[error("{names} names for {brokers} brokers")]
    Names {
        /// How many names.
        names: usize,
        /// How many brokers.
        brokers: usize,
    },
    /// A name occurs twice.
    #[error("'{name}' occurs twice")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// No broker is called so.
    #[error("there is no broker '{name}'")]
    UnknownBroker {
        /// The name.
        name: String,
    },
    /// No client is called so.
    #[error("there is no client '{name}'")]
    UnknownClient {
        /// The name.
        name: String,
    },
    /// Nobody can publish.
    #[error("there is no client to publish")]
    NoClients,
    /// No link joins the two.
    #[error("there is no link between '{from}' and '{to}'")]
    UnknownLink {
        /// One end.
        from: String,
        /// The other.
        to: String,
    },
    /// A link to itself; `links.self_dials` makes brokers dial themselves.
    #[error("a link from '{name}' to itself")]
    LinkToItself {
        /// The broker.
        name: String,
    },
    /// A filter is wrong.
    #[error("{0}")]
    Filter(String),
    /// An event is wrong.
    #[error("{0}")]
    Event(String),
    /// A file of events cannot be read.
    #[error("{}: line {line}: {reason}", path.display())]
    Events {
        /// The file.
        path: PathBuf,
        /// The line; 0 if it cannot be opened.
        line: usize,
        /// Why.
        reason: String,
    },
}

impl Scenario {
    /// Reads a scenario from a file.
    ///
    /// # Errors
    /// [`ScenarioError::Read`] and [`ScenarioError::Syntax`]; what it names is checked as it runs.
    pub fn read(path: &Path) -> Result<Scenario, ScenarioError> {
        let text = std::fs::read_to_string(path).map_err(ScenarioError::Read)?;
        let mut scenario = Scenario::parse(&text)?;
        scenario.folder = path.parent().map(Path::to_owned).unwrap_or_default();
        if scenario.name.is_empty() {
            scenario.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        Ok(scenario)
    }

    /// The scenario as text that [`Scenario::parse`] reads.
    ///
    /// # Panics
    /// Never: all of it can be said in TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("fields with names, lists and plain values")
    }

    /// Reads a scenario from text.
    ///
    /// # Errors
    /// [`ScenarioError::Syntax`].
    pub fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        Ok(toml::from_str(text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_filter;

    #[test]
    fn errors_say_what_is_wrong() {
        let parse = |text: &str| Scenario::parse(text).map(|_| ()).map_err(|error| error.to_string());
        let good = "topology = { shape = 'line', brokers = 3 }\n[[step]]\ndo = 'settle'\n";
        assert_eq!(parse(good), Ok(()));
        let unknown = parse("topology = { shape = 'line', brokers = 3, colour = 1 }\nstep = []").expect_err("a field");
        assert!(unknown.contains("colour"), "{unknown}");
        let step = parse("topology = { brokers = 3 }\n[[step]]\ndo = 'dance'").expect_err("a step");
        assert!(step.contains("dance"), "{step}");
        assert!(read_filter("a = ").expect_err("a filter").to_string().contains('^'));
    }
}
