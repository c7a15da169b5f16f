//! The mesh that core brokers make by themselves: what one of them remembers between two decisions, and who asks for these.
//!
//! A task takes a picture of the core's topology every now and then and hands it to the swarm's task, which knows of dials and
//! connections. There [`Mesh`] makes a [`View`] of both and has [`decide`](decide()) judge it, and the swarm's task does what comes
//! out. `decide.rs` has the rules.

mod decide;
mod members;

use crate::context::Shared;
use crate::event_loop::ControlInput;
use crate::peers::retry_after;
use crate::swarm::SwarmCommand;
use decide::{Member, OwnLink, Reason, Verdict, View, decide, judge};
use enroute_broker::{BrokerId, LinkState, cost_of};
use enroute_session::{LinkReason, MemberStatus};
use libp2p::swarm::ConnectionId;
use libp2p::{Multiaddr, PeerId};
use members::{Members, usable_addresses};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

pub(crate) use decide::{Action, Bounds, Purpose};

/// Between two decisions, on the average.
const LOOK: Duration = Duration::from_millis(500);
/// Between two measurements of the way to somebody, on the average.
const MEASURE: Duration = Duration::from_secs(60);
/// How long a measurement may take.
const MEASURING: Duration = Duration::from_secs(10);
/// The first wait after a member was not reached; it doubles.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest such wait, and the one after a member had no room.
const LAST_RETRY: Duration = Duration::from_secs(60);

/// What the core knows of a broker, this one included.
pub(crate) struct Known {
    pub(crate) record: Arc<LinkState>,
    pub(crate) reachable: bool,
}

/// See the module's page.
pub(crate) struct Mesh {
    me: BrokerId,
    bounds: Bounds,
    random: StdRng,
    /// All other brokers that may be neighbours, as the last picture had them, and those that are remembered.
    others: BTreeMap<BrokerId, Other>,
    /// What the own links cost that are in sync.
    costs: BTreeMap<BrokerId, u32>,
    remembered: Members,
    /// Remembered from an earlier life and not tried yet.
    untried: BTreeSet<BrokerId>,
    retries: BTreeMap<BrokerId, Retry>,
    dials: BTreeMap<BrokerId, Dial>,
    /// The links that this broker has chosen, and whether each is a far one.
    chosen: BTreeMap<BrokerId, bool>,
    /// Links that are being closed.
    dropped: BTreeSet<BrokerId>,
    swap: Option<(BrokerId, BrokerId)>,
    measure_at: Instant,
}

struct Other {
    peer: PeerId,
    addresses: Vec<Multiaddr>,
    member: Member,
    /// What this was read from; none if it is only remembered.
    record: Option<Arc<LinkState>>,
}

/// A member that was not reached.
struct Retry {
    at: Instant,
    failures: u32,
    error: String,
}

/// A dial under way.
struct Dial {
    purpose: Purpose,
    since: Instant,
    connection: Option<ConnectionId>,
    /// The way to it is being measured over its connection.
    measuring: bool,
}

impl Mesh {
    /// With what the data directory remembers of an earlier life.
    pub(crate) fn open(context: &Shared, bounds: Bounds, now: Instant) -> Mesh {
        let mut remembered = context.config.data_dir.as_deref().map(Members::load).unwrap_or_default();
        remembered.retain(|peer| context.is_allowed(peer) && *peer != context.peer);
        Mesh::new(context.broker, bounds, remembered, now, rand::random())
    }

    fn new(me: BrokerId, bounds: Bounds, remembered: Members, now: Instant, seed: u64) -> Mesh {
        let untried = remembered.iter().map(|(peer, _)| id_of(peer)).collect();
        let mut mesh = Mesh {
            me,
            bounds,
            random: StdRng::seed_from_u64(seed),
            others: BTreeMap::new(),
            costs: BTreeMap::new(),
            remembered,
            untried,
            retries: BTreeMap::new(),
            dials: BTreeMap::new(),
            chosen: BTreeMap::new(),
            dropped: BTreeSet::new(),
            swap: None,
            measure_at: now,
        };
        mesh.measure_later(now);
        mesh
    }

    /// Takes in a picture of the topology; `allowed` says who may be a neighbour. Returns the text of the file of members, if it is
    /// another one now.
    pub(crate) fn look(
        &mut self,
        known: Vec<Known>,
        allowed: impl Fn(&PeerId) -> bool,
        now: Instant,
    ) -> Option<String> {
        let mut before = std::mem::take(&mut self.others);
        self.costs.clear();
        for Known { record, reachable } in known {
            if record.origin == self.me {
                self.costs.extend(record.links.iter().map(|link| (link.neighbour, link.cost)));
                continue;
            }
            let id = record.origin;
            let read_before = |other: &Other| other.record.as_ref().is_some_and(|read| Arc::ptr_eq(read, &record));
            let same = before.remove(&id).filter(read_before);
            let Some(mut other) = same.or_else(|| Other::read(record)) else { continue };
            other.member.reachable = reachable;
            if allowed(&other.peer) {
                self.others.insert(id, other);
            }
        }
        let text = self.remember();
        for (peer, addresses) in self.remembered.iter() {
            let other = self.others.entry(id_of(peer)).or_insert_with(|| Other::remembered(*peer));
            if other.addresses.is_empty() {
                other.addresses = addresses.to_vec();
            }
        }
        let others = &self.others;
        self.retries.retain(|id, retry| others.contains_key(id) && now < retry.at + 2 * LAST_RETRY);
        self.dials.retain(|_, dial| !dial.measuring || now < dial.since + MEASURING);
        text
    }

    /// Remembers those within reach; the text of the file, if it is another one now.
    fn remember(&mut self) -> Option<String> {
        let within = self.others.iter().filter(|(_, other)| other.member.reachable && !other.addresses.is_empty());
        let mut within: Vec<(&BrokerId, &Other)> = within.collect();
        // Neighbours first, then in an order of this broker's own: not all should remember the same ones.
        within.sort_by_key(|(id, _)| (!self.costs.contains_key(id), id.0 ^ self.me.0));
        let within = within.into_iter().map(|(_, other)| (other.peer, other.addresses.clone())).collect();
        self.remembered.note(within).then(|| self.remembered.to_text())
    }

    /// What to do now. `linked` are the neighbours, and whether each is a configured peer.
    pub(crate) fn decide(&mut self, linked: &BTreeMap<PeerId, bool>, now: Instant) -> Vec<Action> {
        let measure = self.measure_at <= now;
        if measure {
            self.measure_later(now);
        }
        let view = self.view(linked, measure, now);
        // Once the new one carries events the other goes or stays; it is decided once.
        self.swap = self.swap.filter(|(new, old)| {
            let comes = view.dials.contains_key(new) || view.links.get(new).is_some_and(|link| link.cost.is_none());
            comes && view.links.contains_key(old)
        });
        let actions = decide(self.bounds, &view, &mut self.random);
        for action in &actions {
            if let Action::Drop(neighbour) = action {
                self.dropped.insert(*neighbour);
            }
        }
        actions
    }

    fn measure_later(&mut self, now: Instant) {
        self.measure_at = now + MEASURE.mul_f64(self.random.random_range(0.5..1.5));
    }

    fn view(&self, linked: &BTreeMap<PeerId, bool>, measure: bool, now: Instant) -> View {
        let member = |(&id, other): (&BrokerId, &Other)| {
            let waits = self.retries.get(&id).is_some_and(|retry| now < retry.at) || self.dropped.contains(&id);
            (id, Member { dialable: !other.addresses.is_empty() && !waits, ..other.member.clone() })
        };
        let link = |(peer, configured): (&PeerId, &bool)| {
            let id = id_of(peer);
            let link = OwnLink { cost: self.costs.get(&id).copied(), reason: self.reason(id, *configured) };
            (!self.dropped.contains(&id)).then_some((id, link))
        };
        View {
            me: self.me,
            members: self.others.iter().map(member).collect(),
            links: linked.iter().filter_map(link).collect(),
            dials: self.dials.iter().map(|(id, dial)| (*id, dial.purpose)).collect(),
            swap: self.swap,
            measure,
        }
    }

    fn reason(&self, neighbour: BrokerId, configured: bool) -> Reason {
        match self.chosen.get(&neighbour) {
            _ if configured => Reason::Configured,
            Some(&far) => Reason::Chosen { far },
            None => Reason::Accepted,
        }
    }

    /// A member is about to be dialled; its peer id and addresses.
    pub(crate) fn dial(&mut self, to: BrokerId, purpose: Purpose, now: Instant) -> Option<(PeerId, Vec<Multiaddr>)> {
        let other = self.others.get(&to)?;
        self.untried.remove(&to);
        let measuring = purpose == Purpose::Measure;
        self.dials.insert(to, Dial { purpose, since: now, connection: None, measuring });
        Some((other.peer, other.addresses.clone()))
    }

    /// The connection on which a dial is tried.
    pub(crate) fn dialling(&mut self, to: BrokerId, connection: ConnectionId) {
        if let Some(dial) = self.dials.get_mut(&to) {
            dial.connection = Some(connection);
        }
    }

    /// The member to which a connection was dialled, and whether the way to it is to be measured before anything is said.
    pub(crate) fn dialled(&self, connection: ConnectionId) -> Option<(BrokerId, bool)> {
        let (id, dial) = self.dials.iter().find(|(_, dial)| dial.connection == Some(connection))?;
        Some((*id, dial.measuring))
    }

    /// The way has been measured: whether the two brokers are to have a link.
    pub(crate) fn measured(
        &mut self,
        id: BrokerId,
        took: Duration,
        linked: &BTreeMap<PeerId, bool>,
        now: Instant,
    ) -> bool {
        let view = self.view(linked, false, now);
        let far = match judge(self.bounds, &view, id, cost_of(took)) {
            Verdict::Leave => {
                self.dials.remove(&id);
                return false;
            }
            Verdict::KeepAsFar => true,
            Verdict::Replace(old) => {
                self.swap = Some((id, old));
                false
            }
        };
        if let Some(dial) = self.dials.get_mut(&id) {
            (dial.purpose, dial.measuring) = (Purpose::Grow { far }, false);
        }
        true
    }

    /// A link stands that was dialled for the mesh.
    pub(crate) fn reached(&mut self, id: BrokerId) {
        let Some(dial) = self.dials.remove(&id) else { return };
        let far = match dial.purpose {
            Purpose::Grow { far } => far,
            Purpose::Heal | Purpose::Measure => !self.chosen.values().any(|far| *far),
        };
        self.chosen.insert(id, far);
    }

    /// A dial was for a link that there is already.
    pub(crate) fn not_needed(&mut self, id: BrokerId) {
        self.dials.remove(&id);
    }

    /// A link stands, whoever dialled.
    pub(crate) fn link_up(&mut self, peer: &PeerId) {
        self.retries.remove(&id_of(peer));
        self.untried.remove(&id_of(peer));
    }

    /// The last link to a peer is gone.
    pub(crate) fn link_down(&mut self, peer: &PeerId) {
        self.chosen.remove(&id_of(peer));
        self.dropped.remove(&id_of(peer));
    }

    /// A dial has come to nothing; if the other side had no room, there is no hurry to try again.
    pub(crate) fn failed(&mut self, id: BrokerId, error: String, full: bool, now: Instant) {
        self.dials.remove(&id);
        let failures = self.retries.get(&id).map_or(0, |retry| retry.failures);
        let first = if full { LAST_RETRY } else { FIRST_RETRY };
        let at = now + retry_after(first, LAST_RETRY, failures, self.random.random());
        self.retries.insert(id, Retry { at, failures: failures.saturating_add(1), error });
    }

    /// Whether there is a path to a peer, as far as the last picture has it.
    pub(crate) fn reaches(&self, peer: &PeerId) -> bool {
        self.others.get(&id_of(peer)).is_some_and(|other| other.member.reachable)
    }

    /// Whether every member that was remembered at the start has been tried.
    pub(crate) fn all_tried(&self) -> bool {
        self.untried.is_empty() && !self.dials.values().any(|dial| dial.purpose == Purpose::Heal)
    }

    /// Why there is a link to a peer.
    pub(crate) fn link_reason(&self, peer: &PeerId, configured: bool) -> LinkReason {
        match self.reason(id_of(peer), configured) {
            Reason::Configured => LinkReason::Configured,
            Reason::Chosen { far: true } => LinkReason::ChosenFar,
            Reason::Chosen { far: false } => LinkReason::Chosen,
            Reason::Accepted => LinkReason::Accepted,
        }
    }

    /// The members that are remembered across restarts.
    pub(crate) fn status(&self) -> Vec<MemberStatus> {
        let status = |(peer, addresses): (&PeerId, &[Multiaddr])| MemberStatus {
            peer_id: peer.to_string(),
            addresses: addresses.iter().map(ToString::to_string).collect(),
            reachable: self.reaches(peer),
            last_error: self.retries.get(&id_of(peer)).map(|retry| retry.error.clone()),
        };
        self.remembered.iter().map(status).collect()
    }
}

impl Other {
    /// None if the record's peer id is none.
    fn read(record: Arc<LinkState>) -> Option<Other> {
        let peer = record.peer_id.parse::<PeerId>().ok()?;
        let addresses = usable_addresses(&record.addresses, peer);
        let neighbours = record.links.iter().map(|link| link.neighbour).collect();
        let member = Member { neighbours, ..Member::default() };
        Some(Other { peer, addresses, member, record: Some(record) })
    }

    fn remembered(peer: PeerId) -> Other {
        Other { peer, addresses: Vec::new(), member: Member::default(), record: None }
    }
}

fn id_of(peer: &PeerId) -> BrokerId {
    BrokerId::of_peer(&peer.to_string())
}

/// Has the swarm's task decide again and again, and stores what it wants remembered, until the node stops.
pub(crate) async fn watch(context: Shared) {
    loop {
        let (sender, known) = oneshot::channel();
        if context.control.send(ControlInput::Known(sender)).await.is_err() {
            return;
        }
        let Ok(known) = known.await else { return };
        let (remember, text) = oneshot::channel();
        if context.swarm.send(SwarmCommand::Look { known, remember }).await.is_err() {
            return;
        }
        if let (Ok(Some(text)), Some(data_dir)) = (text.await, context.config.data_dir.clone()) {
            // What cannot be stored has been said.
            let _ = tokio::task::spawn_blocking(move || members::store(&data_dir, &text)).await;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK.mul_f64(rand::random_range(0.5..1.5))) => {} // sleep: until the next look
            () = context.stopping.cancelled() => return,
        }
    }
}

#[cfg(test)]
mod tests;
