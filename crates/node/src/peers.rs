//! Whom to dial and when: plain values, no sockets.

use libp2p::multiaddr::Protocol;
use libp2p::swarm::ConnectionId;
use libp2p::{Multiaddr, PeerId};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use tokio::time::Instant;

const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(5);
/// How long a peer is left in peace that has enough links and can be reached over others.
const FULL: Duration = Duration::from_secs(60);
/// An uplink that is gone before this has not proven itself: it may have refused to take the leaf in.
const PROVEN: Duration = Duration::from_secs(5);

/// The brokers to keep links to, and the links there are.
#[derive(Default)]
pub(crate) struct Peers {
    /// A link to one of them is enough, and no more are dialled: these are a leaf broker's uplinks, in order of preference.
    one_is_enough: bool,
    entries: Vec<Entry>,
    /// Live links by peer, whoever dialled; a peer without any is not listed.
    links: BTreeMap<PeerId, usize>,
    /// Dials under way, and which entry each is for.
    dials: HashMap<ConnectionId, usize>,
}

/// One address to keep a link to.
struct Entry {
    address: Multiaddr,
    /// Who is there: from the address, or learnt when first linked.
    peer: Option<PeerId>,
    state: State,
    /// Whether it has been linked or has failed once.
    tried: bool,
    /// When the last dial became a link.
    reached: Option<Instant>,
    failures: u32,
    last_error: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// To be dialled at that moment, unless a link comes first.
    Waiting(Instant),
    /// Dialling, or saying hello.
    Busy,
    /// It is this node's own address: never dialled again.
    Oneself,
}

/// What is known of an entry, for the status.
pub(crate) struct PeerView<'a> {
    pub(crate) address: &'a Multiaddr,
    pub(crate) peer: Option<PeerId>,
    pub(crate) linked: bool,
    pub(crate) oneself: bool,
    pub(crate) last_error: Option<&'a str>,
}

impl Peers {
    /// The uplinks of a leaf broker, none yet.
    pub(crate) fn uplinks() -> Peers {
        Peers { one_is_enough: true, ..Peers::default() }
    }

    /// Adds an address to be dialled at once; one that is there already is only hurried.
    pub(crate) fn add(&mut self, address: Multiaddr, now: Instant) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.address == address) {
            if let State::Waiting(at) = &mut entry.state {
                *at = now;
            }
            return;
        }
        let peer = peer_of(&address);
        let state = State::Waiting(now);
        self.entries.push(Entry { address, peer, state, tried: false, reached: None, failures: 0, last_error: None });
    }

    /// The entries to dial now, marked as busy; each dial is to be reported with [`Peers::dialling`] or [`Peers::failed`].
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<(usize, Multiaddr)> {
        let mut due = Vec::new();
        if self.has_enough() {
            return due;
        }
        for (index, entry) in self.entries.iter_mut().enumerate() {
            let linked = entry.peer.is_some_and(|peer| self.links.contains_key(&peer));
            if !linked && matches!(entry.state, State::Waiting(at) if at <= now) {
                entry.state = State::Busy;
                due.push((index, entry.address.clone()));
                if self.one_is_enough {
                    break;
                }
            }
        }
        due
    }

    /// Whether there is, or soon may be, the one link that is enough.
    fn has_enough(&self) -> bool {
        self.one_is_enough && (!self.links.is_empty() || self.entries.iter().any(|entry| entry.state == State::Busy))
    }

    /// When something is due next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        if self.has_enough() {
            return None;
        }
        let waiting = self.entries.iter().filter(|e| !e.peer.is_some_and(|peer| self.links.contains_key(&peer)));
        waiting.filter_map(|e| if let State::Waiting(at) = e.state { Some(at) } else { None }).min()
    }

    /// A dial for an entry is under way.
    pub(crate) fn dialling(&mut self, entry: usize, connection: ConnectionId) {
        self.dials.insert(connection, entry);
    }

    /// The entry a dial was for; the dial is over.
    pub(crate) fn dialled(&mut self, connection: ConnectionId) -> Option<usize> {
        self.dials.remove(&connection)
    }

    /// A dial or a hello came to nothing; said aloud the first time since there was a link. `jitter` is from 0 to 1.
    pub(crate) fn failed(&mut self, entry: usize, error: String, now: Instant, jitter: f64) {
        let Some(entry) = self.entries.get_mut(entry) else { return };
        if entry.failures == 0 {
            tracing::warn!(address = %entry.address, error, "a peer is not reached; trying again and again");
        }
        entry.tried = true;
        entry.last_error = Some(error);
        entry.state = State::Waiting(now + retry_after(FIRST_RETRY, LAST_RETRY, entry.failures, jitter));
        entry.failures = entry.failures.saturating_add(1);
    }

    /// The broker there has enough links and is within reach over others: there is no hurry.
    pub(crate) fn full(&mut self, entry: usize, error: String, now: Instant, jitter: f64) {
        let Some(entry) = self.entries.get_mut(entry) else { return };
        tracing::info!(address = %entry.address, error, "a peer has no room for a link; there are other paths to it");
        entry.tried = true;
        entry.last_error = Some(error);
        entry.state = State::Waiting(now + retry_after(FULL, FULL, 0, jitter));
    }

    /// The peers that there are links to, and whether each is there because it was named.
    pub(crate) fn linked(&self) -> BTreeMap<PeerId, bool> {
        let named = |peer: PeerId| self.entries.iter().any(|entry| entry.peer == Some(peer));
        self.links.keys().map(|&peer| (peer, named(peer))).collect()
    }

    /// There is this node itself.
    pub(crate) fn is_oneself(&mut self, entry: usize) {
        let Some(entry) = self.entries.get_mut(entry) else { return };
        entry.tried = true;
        entry.state = State::Oneself;
        entry.last_error = None;
    }

    /// A dial has become a link (reported with [`Peers::link_up`] as well).
    pub(crate) fn reached(&mut self, entry: usize, peer: PeerId, now: Instant) {
        let Some(entry) = self.entries.get_mut(entry) else { return };
        entry.peer = Some(peer);
        entry.tried = true;
        entry.reached = Some(now);
        entry.last_error = None;
        entry.state = State::Waiting(now);
    }

    /// A link stands, whoever dialled it.
    pub(crate) fn link_up(&mut self, peer: PeerId) {
        *self.links.entry(peer).or_default() += 1;
        for entry in self.entries.iter_mut().filter(|entry| entry.peer == Some(peer)) {
            entry.tried = true;
            entry.last_error = None;
            if !self.one_is_enough {
                entry.failures = 0;
            }
        }
    }

    /// A link is gone: whoever it led to is dialled again soon. Returns whether it was the last one to that peer.
    pub(crate) fn link_down(&mut self, peer: PeerId, reason: &str, now: Instant, jitter: f64) -> bool {
        if let Some(count) = self.links.get_mut(&peer)
            && *count > 1
        {
            *count -= 1;
            return false;
        }
        self.links.remove(&peer);
        for entry in self.entries.iter_mut().filter(|entry| entry.peer == Some(peer)) {
            entry.last_error = Some(reason.to_owned());
            let unproven = self.one_is_enough && entry.reached.is_some_and(|at| now < at + PROVEN);
            let failures = if unproven { entry.failures } else { 0 };
            if let State::Waiting(at) = &mut entry.state {
                *at = now + retry_after(FIRST_RETRY, LAST_RETRY, failures, jitter);
            }
            entry.failures = failures + u32::from(unproven);
        }
        true
    }

    /// Whether there is a link to a peer.
    pub(crate) fn is_linked(&self, peer: PeerId) -> bool {
        self.links.contains_key(&peer)
    }

    /// Whether every entry has been linked or has failed once, or one is linked that is enough.
    pub(crate) fn all_tried(&self) -> bool {
        let enough = self.one_is_enough && self.entries.iter().any(|entry| entry.reached.is_some());
        enough || self.entries.iter().all(|entry| entry.tried)
    }

    /// All entries, in the order they were added.
    pub(crate) fn views(&self) -> impl Iterator<Item = PeerView<'_>> {
        self.entries.iter().map(|entry| PeerView {
            address: &entry.address,
            peer: entry.peer,
            linked: entry.peer.is_some_and(|peer| self.links.contains_key(&peer)),
            oneself: entry.state == State::Oneself,
            last_error: entry.last_error.as_deref(),
        })
    }
}

/// The peer id at the end of an address.
pub(crate) fn peer_of(address: &Multiaddr) -> Option<PeerId> {
    match address.iter().last() {
        Some(Protocol::P2p(peer)) => Some(peer),
        _ => None,
    }
}

/// From the first to the last wait, doubled with each failure; half of it is left to chance, so that a crowd does not come back as a crowd.
pub(crate) fn retry_after(first: Duration, last: Duration, failures: u32, jitter: f64) -> Duration {
    let full = first.saturating_mul(1 << failures.min(16)).min(last);
    full.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> Multiaddr {
        format!("/ip4/127.0.0.1/tcp/{port}").parse().unwrap()
    }

    #[test]
    fn retries_are_spaced_out_and_bounded() {
        let mut before = Duration::ZERO;
        for failures in 0..40 {
            let [least, most] = [0.0, 1.0].map(|jitter| retry_after(FIRST_RETRY, LAST_RETRY, failures, jitter));
            assert!(least * 2 == most && most <= LAST_RETRY && most >= before, "{failures}: {least:?} {most:?}");
            before = most;
        }
        assert_eq!(before, LAST_RETRY);
    }

    #[test]
    fn an_entry_is_dialled_once_and_again_only_after_a_failure() {
        let now = Instant::now();
        let mut peers = Peers::default();
        peers.add(address(1), now);
        peers.add(address(1), now);
        assert_eq!(peers.take_due(now).len(), 1);
        assert!(peers.take_due(now).is_empty() && !peers.all_tried() && peers.next_due().is_none());
        peers.failed(0, "refused".into(), now, 1.0);
        assert!(peers.all_tried() && peers.take_due(now).is_empty());
        assert_eq!(peers.next_due(), Some(now + FIRST_RETRY));
        assert_eq!(peers.take_due(now + FIRST_RETRY).len(), 1);
    }

    #[test]
    fn a_peer_without_room_is_left_in_peace_for_a_while() {
        let now = Instant::now();
        let mut peers = Peers::default();
        peers.add(address(1), now);
        peers.take_due(now);
        peers.full(0, "it has its 8 links".into(), now, 1.0);
        assert!(peers.all_tried());
        assert_eq!(peers.next_due(), Some(now + FULL));
    }

    #[test]
    fn nobody_dials_while_any_link_lives() {
        let now = Instant::now();
        let peer = PeerId::random();
        let mut peers = Peers::default();
        peers.add(address(1).with(Protocol::P2p(peer)), now);
        peers.link_up(peer);
        peers.link_up(peer);
        assert!(peers.take_due(now).is_empty() && peers.next_due().is_none() && peers.all_tried());
        assert!(!peers.link_down(peer, "lost", now, 1.0));
        assert!(peers.take_due(now + LAST_RETRY).is_empty());
        assert!(peers.link_down(peer, "lost", now, 1.0));
        assert_eq!(peers.take_due(now + FIRST_RETRY).len(), 1);
    }

    #[test]
    fn an_address_without_a_peer_id_learns_it() {
        let now = Instant::now();
        let peer = PeerId::random();
        let mut peers = Peers::default();
        peers.add(address(1), now);
        assert_eq!(peers.take_due(now), [(0, address(1))]);
        peers.reached(0, peer, now);
        peers.link_up(peer);
        assert!(peers.take_due(now + LAST_RETRY).is_empty());
        peers.link_down(peer, "lost", now, 0.0);
        assert_eq!(peers.take_due(now + LAST_RETRY), [(0, address(1))], "whoever is there now may be another");
    }

    #[test]
    fn one_uplink_is_dialled_at_a_time_and_the_first_that_may_be_is_preferred() {
        let now = Instant::now();
        let (first, second) = (PeerId::random(), PeerId::random());
        let mut uplinks = Peers::uplinks();
        uplinks.add(address(1), now);
        uplinks.add(address(2), now);
        assert_eq!(uplinks.take_due(now), [(0, address(1))]);
        assert!(uplinks.take_due(now).is_empty() && uplinks.next_due().is_none(), "the first may be reached yet");
        uplinks.failed(0, "refused".into(), now, 1.0);
        assert!(!uplinks.all_tried());
        assert_eq!(uplinks.take_due(now), [(1, address(2))]);
        uplinks.reached(1, second, now);
        uplinks.link_up(second);
        let later = now + PROVEN;
        assert!(uplinks.all_tried() && uplinks.take_due(later).is_empty() && uplinks.next_due().is_none());
        uplinks.link_down(second, "lost", later, 1.0);
        assert_eq!(uplinks.take_due(later), [(0, address(1))], "the other one is tried at once");
        uplinks.reached(0, first, later);
        uplinks.link_up(first);
        assert!(uplinks.take_due(later + LAST_RETRY).is_empty());
    }

    #[test]
    fn an_uplink_that_does_not_keep_the_leaf_is_tried_less_and_less_often() {
        let mut now = Instant::now();
        let peer = PeerId::random();
        let mut uplinks = Peers::uplinks();
        uplinks.add(address(1), now);
        for wait in [1, 2, 4, 8].map(|times| FIRST_RETRY * times) {
            assert_eq!(uplinks.take_due(now).len(), 1);
            uplinks.reached(0, peer, now);
            uplinks.link_up(peer);
            uplinks.link_down(peer, "no path to a core broker", now, 1.0);
            assert_eq!(uplinks.next_due(), Some(now + wait));
            now += wait;
        }
        assert_eq!(uplinks.take_due(now).len(), 1);
        uplinks.reached(0, peer, now);
        uplinks.link_up(peer);
        uplinks.link_down(peer, "lost", now + PROVEN, 1.0);
        assert_eq!(uplinks.next_due(), Some(now + PROVEN + FIRST_RETRY), "it has proven itself");
    }

    #[test]
    fn oneself_is_left_alone() {
        let now = Instant::now();
        let mut peers = Peers::default();
        peers.add(address(1), now);
        peers.take_due(now);
        peers.is_oneself(0);
        assert!(peers.all_tried() && peers.next_due().is_none());
        assert!(peers.views().all(|view| view.oneself));
    }
}
