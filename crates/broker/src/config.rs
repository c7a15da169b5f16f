//! Who a broker is, its times and its bounds.

use crate::BrokerId;
use enroute_covering::MergingConfig;
use enroute_filter::Limits;
use std::sync::Arc;
use std::time::Duration;

/// Who a broker is, in this life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Hash of the peer id.
    pub id: BrokerId,
    /// The peer id in text form.
    pub peer_id: Arc<str>,
    /// Larger than in any earlier life; stored before the first hello.
    pub incarnation: u64,
    /// Drawn at random at this start.
    pub start_nonce: u64,
    /// Multiaddresses at which it can be dialled, told to all; [`Input::Addresses`](crate::Input::Addresses) changes them.
    pub addresses: Vec<String>,
}

/// Times and bounds of the core. The defaults are right for most; tests and simulations shorten or tighten them.
///
/// Some times hold only together: `narrowing` must exceed `publish_wait`, or a scope could shrink under a publication that
/// waits; `grace` must exceed `unreachable`, and that the time it takes to find a dead link, or a broker would be forgotten
/// while others still count on its being told; `publish_wait` must exceed `scope_pause`, or an advertisement could be
/// answered, and an event go out, before anybody has been told that such events are published here.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Whether this is a leaf broker: it hangs off one uplink at a time and has no links to core brokers else.
    pub leaf: bool,
    /// Whether links cost what their measured round trips say. Otherwise each costs what its driver says, and where that is the
    /// same for all, paths are those with the fewest links.
    pub measured: bool,
    /// Whether fewer filters are announced than there are roots.
    pub merging: MergingConfig,
    /// How long after the start the broker counts as starting at most.
    pub starting: Duration,
    /// How long an unreachable broker keeps its interest.
    pub grace: Duration,
    /// Publications wait at most this long for a complete view of what others want.
    pub publish_wait: Duration,
    /// A subscription or advertisement is answered at the latest after this.
    pub subscribe_wait: Duration,
    /// A broker leaves a wait after it has been unreachable for this long (longer than it takes to find a dead link).
    pub unreachable: Duration,
    /// An event without a next hop waits at most this long for one.
    pub park: Duration,
    /// A scope that could be narrowed is, after this.
    pub narrowing: Duration,
    /// Changes of the own link state after a first one are told together after this.
    pub coalesce: Duration,
    /// Changes of the own scope after a first one are told together after this: each makes all other brokers answer.
    pub scope_pause: Duration,
    /// Where much is told from end to end over one link, it is gathered for this long: what many say to one, or one to many, then
    /// goes over the link together.
    pub gather: Duration,
    /// Unacknowledged control is sent again after this, then after twice as long, up to [`Config::resend_max`].
    pub resend: Duration,
    /// See [`Config::resend`].
    pub resend_max: Duration,
    /// How long a leaf broker stays with a parent that has lost its path to the core; and how long one without an uplink lets
    /// a subscription wait for one.
    pub path_wait: Duration,
    /// How long a leaf broker may rely on what its parent last told it of others' interest.
    pub lease: Duration,
    /// How long after a lease was asked for the parent goes on reckoning with it; must exceed `lease`, by more than clocks
    /// drift apart in that time.
    pub lease_margin: Duration,
    /// How long the ids of events are remembered that came from a leaf or an uplink, to know them again; longer than an event
    /// may wait on its way.
    pub seen: Duration,
    /// Publications that may wait, in all.
    pub waiting_publications: usize,
    /// Bytes of events that may wait for a complete view, and again as many, destinations included, that may be parked for a
    /// next hop.
    pub waiting_bytes: usize,
    /// Events that a leaf broker keeps while it has no uplink; beyond, the oldest go.
    pub kept_events: usize,
    /// Bytes of these events.
    pub kept_bytes: usize,
    /// Subscriptions and advertisements of one client.
    pub names_per_client: usize,
    /// Clients at a time.
    pub clients: usize,
    /// Links at a time.
    pub links: usize,
    /// Leaf brokers that may hang off this broker at a time.
    pub leaves: usize,
    /// Filters that a leaf broker can hold of what others want; if there are more it is told "anything".
    pub leaf_table: u32,
    /// Brokers in the network.
    pub brokers: usize,
    /// Filters that one other broker, or a leaf broker below, may have announced here.
    pub filters_per_broker: usize,
    /// Limits on events that come from neighbours.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            leaf: false,
            measured: true,
            merging: MergingConfig::default(),
            starting: Duration::from_secs(2),
            grace: Duration::from_secs(60),
            publish_wait: Duration::from_secs(5),
            subscribe_wait: Duration::from_secs(10),
            unreachable: Duration::from_secs(4),
            park: Duration::from_secs(1),
            narrowing: Duration::from_secs(600),
            coalesce: Duration::from_millis(20),
            scope_pause: Duration::from_millis(50),
            gather: Duration::from_millis(2),
            resend: Duration::from_millis(500),
            resend_max: Duration::from_secs(5),
            path_wait: Duration::from_secs(2),
            lease: Duration::from_secs(2),
            lease_margin: Duration::from_secs(3),
            seen: Duration::from_secs(60),
            waiting_publications: 65_536,
            waiting_bytes: 64 << 20,
            kept_events: 65_536,
            kept_bytes: 16 << 20,
            names_per_client: 1 << 20,
            clients: 65_536,
            links: 1_024,
            leaves: 4_096,
            leaf_table: 65_536,
            brokers: 65_536,
            filters_per_broker: 4 << 20,
            limits: Limits::default(),
        }
    }
}
