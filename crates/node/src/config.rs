//! What a node can be told.

use crate::NodeError;
use enroute_broker::{Budget, MergingConfig};
use enroute_session::SlowSubscriber;
use libp2p::{Multiaddr, PeerId};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// What becomes of events for a neighbour that takes them more slowly than they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FullLink {
    /// Later ones are dropped and counted: a slow link costs nobody else anything.
    Drop,
    /// Whoever brings them, publishers here and other neighbours, is held up, which also slows what they send elsewhere.
    PushBack,
}

/// A node's configuration; as a TOML file, every field may be left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeConfig {
    /// Multiaddresses at which brokers and clients are accepted, such as `/ip4/0.0.0.0/tcp/7440`. Default: none, a node
    /// that only dials.
    pub listen: Vec<Multiaddr>,
    /// Addresses to tell others beside those at which it listens: what a forwarded port or a name makes of them. Default: none.
    pub announce: Vec<Multiaddr>,
    /// Brokers to keep a link to, with or without `/p2p/ID` at the end; with it, nobody else is accepted there. One member of a
    /// network is enough to join it. Default: none.
    pub peers: Vec<Multiaddr>,
    /// Whether the broker, once it knows members of the network, chooses further neighbours among them by itself, gives some up
    /// that it has not been told of, and refuses links when it has enough. Otherwise it has links to `peers`, and to whoever
    /// dials it. A leaf broker never chooses. Default: true.
    pub mesh: bool,
    /// The links to other core brokers that it looks for at least. Default: 3.
    pub min_links: usize,
    /// The most such links that it keeps, but for configured ones and those without which there is no path. Default: 8.
    pub max_links: usize,
    /// Makes this a leaf broker, which hangs off one of these brokers at a time, be it a core broker or a leaf broker itself:
    /// the first that takes it in, then the next one when that is lost. With or without `/p2p/ID` at the end. Default: none, a core
    /// broker.
    pub leaf: Vec<Multiaddr>,
    /// Where the identity and whatever else must outlive a restart is kept. Default: nowhere, each start has a new identity.
    pub data_dir: Option<PathBuf>,
    /// The peer ids that may be brokers of this network, core or leaf, besides those that `peers` or `leaf` names. Default: none listed, which lets anybody in.
    pub allow: Vec<PeerId>,
    /// Milliseconds between signs of life on a quiet link; a link silent for three of them is dead. Default: 1000.
    pub keep_alive_ms: u64,
    /// Bytes of control that may wait for a neighbour; beyond it the link is closed and built anew. Default: 64 MiB.
    pub link_control_bytes: usize,
    /// Events that may wait for a neighbour. Default: 65,536.
    pub link_queue_events: usize,
    /// Bytes of events that may wait for a neighbour. Default: 64 MiB.
    pub link_queue_bytes: usize,
    /// What happens when more waits for a neighbour: `drop` (later events are dropped and counted) or `push_back` (slows down
    /// those who publish, for at most a second at a time). Default: `drop`.
    pub full_link: FullLink,
    /// Events that a leaf broker keeps while it has no uplink; beyond, the oldest go. Default: 65,536.
    pub kept_events: usize,
    /// Bytes of these events. Default: 16 MiB.
    pub kept_bytes: usize,
    /// Whether filters that differ in one attribute are announced to other brokers as one, which asks for the same events.
    /// Default: false.
    pub merge: bool,
    /// Merges filters that differ in more, too, as soon as there are more than so many to announce: more events come then than
    /// anybody here wants. Default: not at all.
    pub merge_filters: Option<usize>,
    /// How many more: the share, from 0 to 1, of the events seen here that may match what is announced though nobody wants them.
    /// Where there would be more, more filters are announced. Default: 0.01.
    pub merge_false_interest: f64,
    /// Events that may wait for a client. Default: 65,536.
    pub client_queue_events: usize,
    /// Bytes of events that may wait for a client. Default: 64 MiB.
    pub client_queue_bytes: usize,
    /// What happens when more waits for a client that asks for nothing special: `drop_oldest`, `drop_newest`, `disconnect`
    /// or `push_back` (slows down those who publish). Default: `drop_oldest`.
    pub slow_subscriber: SlowSubscriber,
}

impl Default for NodeConfig {
    fn default() -> NodeConfig {
        NodeConfig {
            listen: Vec::new(),
            announce: Vec::new(),
            peers: Vec::new(),
            mesh: true,
            min_links: 3,
            max_links: 8,
            leaf: Vec::new(),
            data_dir: None,
            allow: Vec::new(),
            keep_alive_ms: 1_000,
            link_control_bytes: 64 << 20,
            link_queue_events: 65_536,
            link_queue_bytes: 64 << 20,
            full_link: FullLink::Drop,
            kept_events: 65_536,
            kept_bytes: 16 << 20,
            merge: false,
            merge_filters: None,
            merge_false_interest: 0.01,
            client_queue_events: 65_536,
            client_queue_bytes: 64 << 20,
            slow_subscriber: SlowSubscriber::DropOldest,
        }
    }
}

impl NodeConfig {
    /// Reads a configuration from TOML.
    ///
    /// # Errors
    /// [`NodeError::Config`] with the place and what was expected: unknown fields, wrong types, values out of range.
    pub fn from_toml(text: &str) -> Result<NodeConfig, NodeError> {
        let config: NodeConfig = toml::from_str(text).map_err(|e| NodeError::Config(e.to_string()))?;
        config.check()?;
        Ok(config)
    }

    /// Whether all values are in range.
    ///
    /// # Errors
    /// [`NodeError::Config`].
    pub fn check(&self) -> Result<(), NodeError> {
        // Less would take a busy moment for a death; more would outlast the core's own waits.
        if !(50..=60_000).contains(&self.keep_alive_ms) {
            return Err(NodeError::Config(format!("keep_alive_ms is {}, not from 50 to 60000", self.keep_alive_ms)));
        }
        if !self.leaf.is_empty() && !self.peers.is_empty() {
            let text = "a leaf broker (`leaf`) has no peers: it hangs off one uplink, and is linked to nobody else";
            return Err(NodeError::Config(text.into()));
        }
        // The core takes no more links than the upper end.
        if self.min_links < 1 || self.min_links > self.max_links || self.max_links > 1_000 {
            let (min, max) = (self.min_links, self.max_links);
            return Err(NodeError::Config(format!(
                "min_links is {min} and max_links {max}, not 1 <= min <= max <= 1000"
            )));
        }
        if !(0.0..=1.0).contains(&self.merge_false_interest) {
            let share = self.merge_false_interest;
            return Err(NodeError::Config(format!("merge_false_interest is {share}, not from 0 to 1")));
        }
        let bounds = [
            ("merge_filters", self.merge_filters.unwrap_or(1), 1),
            ("link_control_bytes", self.link_control_bytes, 2 << 20),
            ("link_queue_events", self.link_queue_events, 1),
            ("link_queue_bytes", self.link_queue_bytes, 1),
            ("client_queue_events", self.client_queue_events, 1),
            ("client_queue_bytes", self.client_queue_bytes, 1),
        ];
        for (name, value, least) in bounds {
            if value < least {
                return Err(NodeError::Config(format!("{name} is {value}, less than {least}")));
            }
        }
        Ok(())
    }

    /// How the core merges what it announces.
    pub(crate) fn merging(&self) -> MergingConfig {
        let false_interest = self.merge_false_interest;
        MergingConfig {
            perfect: self.merge,
            imperfect: self.merge_filters.map(|filters| Budget { filters, false_interest }),
        }
    }

    /// Time between signs of life.
    pub(crate) fn keep_alive(&self) -> Duration {
        Duration::from_millis(self.keep_alive_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_file_is_the_default() {
        assert_eq!(NodeConfig::from_toml("").unwrap(), NodeConfig::default());
    }

    #[test]
    fn what_is_written_reads_back() {
        let config = NodeConfig {
            listen: vec!["/ip4/127.0.0.1/tcp/7440".parse().unwrap()],
            allow: vec![PeerId::random()],
            data_dir: Some("/var/lib/enroute".into()),
            merge_filters: Some(500),
            slow_subscriber: SlowSubscriber::PushBack,
            ..NodeConfig::default()
        };
        let text = toml::to_string(&config).unwrap();
        assert!(text.contains("slow_subscriber = \"push_back\""), "{text}");
        assert_eq!(NodeConfig::from_toml(&text).unwrap(), config);
    }

    #[test]
    fn errors_name_the_field() {
        for (text, word) in [
            ("lisen = []", "lisen"),
            ("listen = ['nonsense']", "listen"),
            ("keep_alive_ms = 1", "keep_alive_ms"),
            ("link_queue_events = 0", "link_queue_events"),
            ("slow_subscriber = 'explode'", "slow_subscriber"),
            ("leaf = ['/ip4/192.0.2.1/tcp/1']\npeers = ['/ip4/192.0.2.2/tcp/1']", "leaf"),
            ("full_link = 'explode'", "full_link"),
            ("min_links = 9", "min_links"),
            ("min_links = 0", "min_links"),
            ("max_links = 5000", "max_links"),
            ("announce = ['here']", "announce"),
            ("merge_filters = 0", "merge_filters"),
            ("merge_false_interest = 1.5", "merge_false_interest"),
            ("merge_false_interest = nan", "merge_false_interest"),
        ] {
            let error = NodeConfig::from_toml(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
