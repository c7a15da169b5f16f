//! Who a broker is, its times and its bounds.

use crate::BrokerId;
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
    /// Multiaddresses at which it listens, told to all.
    pub addresses: Vec<String>,
}

/// Times and bounds of the core. The defaults are right for most; tests and simulations shorten or tighten them.
///
/// Some times hold only together: `narrowing` must exceed `publish_wait`, or a scope could shrink under a publication that
/// waits; `grace` must exceed `unreachable`, and that the time it takes to find a dead link, or a broker would be forgotten
/// while others still count on its being told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
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
    /// Unacknowledged control is sent again after this, then after twice as long, up to [`Config::resend_max`].
    pub resend: Duration,
    /// See [`Config::resend`].
    pub resend_max: Duration,
    /// Publications that may wait, in all.
    pub waiting_publications: usize,
    /// Bytes of events that may wait for a complete view, and again as many, destinations included, that may be parked for a
    /// next hop.
    pub waiting_bytes: usize,
    /// Subscriptions and advertisements of one client.
    pub names_per_client: usize,
    /// Clients at a time.
    pub clients: usize,
    /// Links at a time.
    pub links: usize,
    /// Brokers in the network.
    pub brokers: usize,
    /// Filters that one other broker may have announced here.
    pub filters_per_broker: usize,
    /// Limits on events that come from neighbours.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            starting: Duration::from_secs(2),
            grace: Duration::from_secs(60),
            publish_wait: Duration::from_secs(5),
            subscribe_wait: Duration::from_secs(10),
            unreachable: Duration::from_secs(4),
            park: Duration::from_secs(1),
            narrowing: Duration::from_secs(600),
            coalesce: Duration::from_millis(20),
            resend: Duration::from_millis(500),
            resend_max: Duration::from_secs(5),
            waiting_publications: 65_536,
            waiting_bytes: 64 << 20,
            names_per_client: 1 << 20,
            clients: 65_536,
            links: 1_024,
            brokers: 65_536,
            filters_per_broker: 4 << 20,
            limits: Limits::default(),
        }
    }
}
