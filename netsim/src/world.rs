//! The world: brokers, links, clients and a clock that jumps from one happening to the next.
//!
//! A world does what a daemon's driver does, with a queue of happenings instead of sockets and a clock. It draws every
//! duration from its seed and iterates over nothing that is not ordered, so that one seed gives one run.

use crate::client::{Answer, Client, Ticket};
use crate::echo::Echoes;
use crate::leaf::Uplinks;
use crate::link::{Channel, Connection, Dial, Edge, LinkSettings, Standing, draw};
use crate::oracle::{Oracle, Truth};
use crate::paths::{Graph, Paths};
use crate::rules::Flap;
use crate::settled::{AtOnce, MOST_WORDS};
use crate::shared::SharedFilters;
use crate::tally::{Count, LinkTally, Tally};
use crate::traffic::Domain;
use crate::workload::Workload;
use crate::{Random, seeded};
use enroute_broker::{Broker, BrokerId, ClientId, Config, EventId, Input, Output, Status, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// What a world is made from.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Names of the brokers.
    pub brokers: Vec<String>,
    /// Links, as pairs of places in `brokers`.
    pub links: Vec<[usize; 2]>,
    /// The leaf brokers by their places in `brokers`, each with those of its uplinks in the order in which it tries them.
    pub uplinks: BTreeMap<usize, Vec<usize>>,
    /// Brokers that have the identity of another one, by their places; they start only when they are told to.
    pub clones: BTreeMap<usize, usize>,
    /// Properties of the links.
    pub link: LinkSettings,
    /// Times and bounds of the brokers.
    pub config: Config,
    /// What random events and filters are about.
    pub domain: Domain,
    /// Everything random comes from this.
    pub seed: u64,
}

/// A broker's machine: what outlives a crash, and the broker while it is up.
pub(crate) struct Host {
    pub(crate) name: Arc<str>,
    /// The text that it is known by to others: its name, unless it is a clone.
    pub(crate) peer_id: Arc<str>,
    pub(crate) id: BrokerId,
    pub(crate) core: Option<Broker>,
    /// Counts the starts.
    pub(crate) life: u64,
    /// The largest incarnation that was ever stored.
    pub(crate) incarnation: u64,
    pub(crate) start_nonce: u64,
    /// Counts the dials of this life.
    pub(crate) dials: u64,
    /// Links that it dialled at its start and whose outcome it does not know yet.
    pub(crate) untried: BTreeSet<usize>,
    /// Of a leaf's machine.
    pub(crate) uplinks: Uplinks,
    /// Events that wait in the broker on their way up.
    pub(crate) waiting: BTreeSet<EventId>,
    /// Copies that it had counted as lost in this life when the network last settled.
    pub(crate) written_off: u64,
    /// When its timer rings.
    wake: Option<Time>,
}

/// Something that is going to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// A broker's timer rings.
    Wake { host: usize, life: u64 },
    /// The first message in flight to a side of a connection arrives.
    Arrival {
        connection: u64,
        side: usize,
        channel: Channel,
        /// Whether it is no more than a sign of life.
        idle: bool,
    },
    /// The side of a connection has exchanged hellos.
    Up { connection: u64, side: usize },
    /// The side of a broken connection learns of it.
    Down { connection: u64, side: usize },
    /// The other side has closed the connection and all it had sent has arrived.
    Ended { connection: u64, side: usize },
    /// The broker at a side of a link dials.
    Dial { edge: usize, side: usize, life: u64 },
    /// A leaf's machine dials its next uplink.
    DialUplink { host: usize, life: u64, number: u64, slow: bool },
    /// The side of a connection measures how long it takes to the other side and back.
    Probe { connection: u64, side: usize },
    /// A client connects (again).
    Connect { client: usize, life: u64 },
    /// A link has been up for long enough to be counted on.
    Counted,
    /// A flapping link is cut or healed.
    Flap { edge: usize, flap: Flap },
    /// A client that has read nothing for a while reads on.
    ReadOn { client: usize, stall: u64 },
}

impl Happening {
    /// Whether the network is at work while this is to come.
    fn is_work(self) -> bool {
        match self {
            Happening::Wake { .. } | Happening::Probe { .. } | Happening::Counted => false,
            Happening::Arrival { idle, .. } => !idle,
            Happening::DialUplink { slow, .. } => !slow,
            Happening::Up { .. }
            | Happening::Down { .. }
            | Happening::Ended { .. }
            | Happening::Dial { .. }
            | Happening::Connect { .. }
            | Happening::Flap { .. }
            | Happening::ReadOn { .. } => true,
        }
    }
}

/// See the module's page.
pub struct World {
    pub(crate) settings: Settings,
    pub(crate) random: Random,
    pub(crate) now: Time,
    queue: BTreeMap<(Time, u64), Happening>,
    /// Numbers happenings, so that those of one time have an order.
    scheduled: u64,
    /// No more than so many happen; it is wrong if there would be more, and then nothing happens any more.
    most_happenings: u64,
    overrun: bool,
    /// How many happenings to come are work.
    work: usize,
    /// When something last happened that was more than an idle timer.
    pub(crate) active: Time,
    pub(crate) hosts: Vec<Host>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) connections: BTreeMap<u64, Connection>,
    pub(crate) next_connection: u64,
    pub(crate) clients: Vec<Client>,
    pub(crate) sessions: BTreeMap<ClientId, usize>,
    pub(crate) next_session: u64,
    pub(crate) open: BTreeMap<Ticket, Answer>,
    pub(crate) replies: BTreeMap<Ticket, enroute_broker::Reply>,
    pub(crate) oracle: Oracle,
    pub(crate) paths: Paths,
    pub(crate) tally: Tally,
    /// Where brokers of a network that started at rest hold each other's interest; others each have a place of their own.
    pub(crate) shared: Option<SharedFilters>,
    /// What is there at once instead of going over links, while that is so.
    pub(crate) at_once: Option<AtOnce>,
    /// Whether the network has settled and nothing has changed since.
    pub(crate) calm: bool,
    /// Where brokers are in `hosts`, as of the last time the network was settled.
    pub(crate) places: BTreeMap<BrokerId, usize>,
    pub(crate) calm_publications: u64,
    pub(crate) calm_crossings: u64,
    /// Links in the unions of the shortest paths, for the same publications.
    pub(crate) calm_union: u64,
    /// Paths of the same publications, by their cost in percent of the least.
    pub(crate) stretch: BTreeMap<u64, u64>,
    /// Links that one tree for all would have used for them.
    pub(crate) calm_tree: u64,
    /// Subscriptions whose wait ran out.
    pub(crate) partial: u64,
    /// Where something that is wanted is published, in the moment in which a subscription is answered.
    pub(crate) echoes: Option<Echoes>,
    /// Brokers that went down because another one has their identity.
    pub(crate) in_use: u64,
    /// The most that any message has been delayed by a rule, in microseconds.
    pub(crate) slowest: u64,
    /// Brokers that are down after a crash, and since when.
    pub(crate) down: BTreeMap<BrokerId, Time>,
    /// When a cut link was last made whole.
    pub(crate) healed_at: Time,
    /// When the last link that is stalled goes on.
    pub(crate) stalled_until: Time,
    /// What is asked and what becomes of it, if that is noted down.
    pub(crate) workload: Option<Workload>,
    trace: Option<Box<dyn Write>>,
    progress: Option<Box<dyn FnMut(Time, usize)>>,
    outputs: Vec<Output>,
}

/// Why a world does not come to rest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsettled {
    /// Requests are open and nothing is going to happen any more.
    #[error("{open} requests have no answer and nothing is going to happen any more")]
    Stuck {
        /// How many.
        open: usize,
    },
    /// It takes too long.
    #[error("still at work after {seconds} s of virtual time")]
    Busy {
        /// How long was waited.
        seconds: u64,
    },
}

impl Host {
    /// The machine of the broker with a place in the settings, not started yet.
    fn new(settings: &Settings, place: usize) -> Host {
        let known_as = &settings.brokers[*settings.clones.get(&place).unwrap_or(&place)];
        Host {
            name: settings.brokers[place].as_str().into(),
            peer_id: known_as.as_str().into(),
            id: BrokerId::of_peer(known_as),
            core: None,
            life: 0,
            incarnation: 0,
            start_nonce: 0,
            dials: 0,
            untried: BTreeSet::new(),
            uplinks: Uplinks::default(),
            waiting: BTreeSet::new(),
            written_off: 0,
            wake: None,
        }
    }
}

/// The links of the core, then those of leaves to their uplinks, then dials of brokers to themselves.
fn edges(settings: &Settings, random: &mut Random) -> Vec<Edge> {
    let Settings { brokers, links, uplinks, link, .. } = settings;
    let mut edge = |hosts, dials| Edge::new(link, random, hosts, dials);
    let mut edges: Vec<Edge> = links.iter().map(|&hosts| edge(hosts, [true, link.dial == Dial::Both])).collect();
    for (&leaf, uplinks) in uplinks {
        edges.extend(uplinks.iter().map(|&uplink| Edge { uplink: true, ..edge([leaf, uplink], [true, false]) }));
    }
    if link.self_dials {
        let core = (0..brokers.len()).filter(|host| !uplinks.contains_key(host));
        edges.extend(core.map(|host| edge([host, host], [true, false])));
    }
    edges
}

impl World {
    /// Builds the brokers, all down; see [`World::start_all`].
    pub fn new(settings: Settings) -> World {
        let mut random = seeded(settings.seed, "world");
        let mut hosts: Vec<Host> = (0..settings.brokers.len()).map(|place| Host::new(&settings, place)).collect();
        let edges = edges(&settings, &mut random);
        for (place, edge) in edges.iter().enumerate().filter(|(_, edge)| edge.uplink) {
            hosts[edge.hosts[0]].uplinks.edges.push(place);
        }
        World {
            tally: Tally { links: vec![LinkTally::default(); edges.len()], ..Tally::default() },
            random,
            now: Time(0),
            queue: BTreeMap::new(),
            scheduled: 0,
            most_happenings: u64::MAX,
            overrun: false,
            work: 0,
            active: Time(0),
            hosts,
            edges,
            connections: BTreeMap::new(),
            next_connection: 0,
            clients: Vec::new(),
            sessions: BTreeMap::new(),
            next_session: 1,
            open: BTreeMap::new(),
            replies: BTreeMap::new(),
            oracle: Oracle::default(),
            paths: Paths::default(),
            shared: None,
            at_once: None,
            calm: false,
            places: BTreeMap::new(),
            calm_publications: 0,
            calm_crossings: 0,
            calm_union: 0,
            stretch: BTreeMap::new(),
            calm_tree: 0,
            partial: 0,
            echoes: None,
            in_use: 0,
            slowest: 0,
            down: BTreeMap::new(),
            healed_at: Time(0),
            stalled_until: Time(0),
            workload: None,
            trace: None,
            progress: None,
            outputs: Vec::new(),
            settings,
        }
    }

    /// Writes every output of every broker, every fault and every link that comes or goes, a line each, from now on.
    pub fn set_trace(&mut self, trace: Box<dyn Write>) {
        self.trace = Some(trace);
    }

    /// Calls this every few thousand happenings with the virtual time and the number of publications so far.
    pub fn set_progress(&mut self, progress: Box<dyn FnMut(Time, usize)>) {
        self.progress = Some(progress);
    }

    /// Notes down from now on what is asked and what becomes of each event.
    pub(crate) fn record_workload(&mut self) {
        self.workload = Some(Workload::default());
    }

    /// What has been noted down.
    pub(crate) fn take_workload(&self) -> Workload {
        self.workload.clone().unwrap_or_default()
    }

    /// For each client its broker.
    pub(crate) fn homes(&self) -> Vec<usize> {
        self.clients.iter().map(|client| client.host).collect()
    }

    /// Lets no more than so many things happen. A network that needs more does not come to rest, which is wrong.
    pub fn set_most_happenings(&mut self, most: u64) {
        self.most_happenings = most;
    }

    /// The virtual time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many brokers there are, up or down.
    pub fn broker_count(&self) -> usize {
        self.hosts.len()
    }

    /// How many links there are, cut or not; dials of brokers to themselves not counted.
    pub fn link_count(&self) -> usize {
        self.edges.iter().filter(|edge| !edge.is_loop()).count()
    }

    /// The links that are cut, or those that are not.
    pub fn links(&self, cut: bool) -> Vec<usize> {
        (0..self.link_count()).filter(|&link| self.edges[link].cut == cut).collect()
    }

    /// The brokers that are up, or those that are down.
    pub fn brokers(&self, up: bool) -> Vec<usize> {
        (0..self.hosts.len()).filter(|&host| self.hosts[host].core.is_some() == up).collect()
    }

    /// The place of a broker in [`Settings::brokers`].
    pub fn broker(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|host| *host.name == *name)
    }

    /// The place of the link between two brokers in [`Settings::links`].
    pub fn link_between(&self, a: usize, b: usize) -> Option<usize> {
        self.edges.iter().position(|edge| edge.hosts == [a, b] || edge.hosts == [b, a])
    }

    /// What a broker says of itself; none while it is down.
    pub fn status(&mut self, broker: usize) -> Option<Status> {
        self.hosts[broker].core.as_mut().map(|core| core.status())
    }

    /// What is wrong so far, in words: broken promises that are seen as they happen.
    pub fn complaints(&self) -> &[String] {
        self.oracle.book.complaints()
    }

    /// Control messages so far, by kind.
    pub fn control(&self) -> &BTreeMap<&'static str, Count> {
        &self.tally.control
    }

    pub(crate) fn complain(&mut self, complaint: String) {
        let now = self.now.0;
        self.oracle.book.complain(format!("at {now} us: {complaint}"));
    }

    pub(crate) fn schedule(&mut self, at: Time, happening: Happening) {
        if self.overrun {
            return;
        }
        self.queue.insert((at.max(self.now), self.scheduled), happening);
        self.scheduled += 1;
        self.work += usize::from(happening.is_work());
    }

    pub(crate) fn after(&mut self, range: [u64; 2]) -> Time {
        self.now + Duration::from_micros(draw(&mut self.random, range))
    }

    /// The next thing happens, if anything is to come.
    fn step(&mut self) -> bool {
        if self.scheduled > self.most_happenings {
            self.complain(format!("more than {} things happen", self.most_happenings));
            self.most_happenings = u64::MAX;
            (self.overrun, self.work) = (true, 0);
            self.queue.clear();
        }
        let Some(((at, number), happening)) = self.queue.pop_first() else { return false };
        self.now = at;
        self.oracle.book.tick();
        if happening.is_work() {
            self.work -= 1;
            self.active = at;
        }
        if number % 4_096 == 0
            && let Some(progress) = &mut self.progress
        {
            progress(at, self.oracle.publications());
        }
        match happening {
            Happening::Wake { host, life } => self.on_wake(host, life, at),
            Happening::Arrival { connection, side, channel, idle: _ } => self.on_arrival(connection, side, channel),
            Happening::Up { connection, side } => self.on_up(connection, side),
            Happening::Down { connection, side } => self.on_down(connection, side),
            Happening::Ended { connection, side } => self.on_ended(connection, side),
            Happening::Dial { edge, side, life } => self.on_dial(edge, side, life),
            Happening::DialUplink { host, life, number, slow: _ } => self.on_dial_uplink(host, life, number),
            Happening::Probe { connection, side } => self.on_probe(connection, side),
            Happening::Connect { client, life } => self.on_connect(client, life),
            Happening::Counted => self.count_links(),
            Happening::Flap { edge, flap } => self.on_flap(edge, flap),
            Happening::ReadOn { client, stall } => self.on_read_on(client, stall),
        }
        true
    }

    fn on_wake(&mut self, host: usize, life: u64, at: Time) {
        if self.hosts[host].life == life && self.hosts[host].wake == Some(at) {
            self.hosts[host].wake = None;
            self.give(host, Input::Timer);
        }
    }

    fn on_arrival(&mut self, number: u64, side: usize, channel: Channel) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if connection.broken.is_some() {
            return;
        }
        let link = Connection::link(number, side);
        let host = self.edges[connection.edge].hosts[side];
        // A leaf listens to its present uplink only.
        let (uplink, ignored) = (self.edges[connection.edge].uplink, connection.ends[side].standing != Standing::Up);
        let from = self.edges[connection.edge].hosts[1 - side];
        let other = &mut connection.ends[1 - side];
        let input = match channel {
            Channel::Control => other.control.arrive().map(|message| Input::Message { link, message }),
            Channel::Events => other.events.arrive().map(|frame| Input::Event { link, frame }),
        };
        if connection.is_over() {
            self.connections.remove(&number);
        }
        if let Some(Input::Event { frame, .. }) = &input {
            if let Some(workload) = &mut self.workload {
                workload.crossed(frame, [from, host]);
            }
            match (uplink, side == 0 && ignored) {
                (false, _) => self.oracle.arrived(self.hosts[host].id, frame, self.now),
                (true, false) => self.oracle.hop_arrived(host, frame, self.now),
                (true, true) => self.oracle.hop_lost(false, self.leaves_below(host), frame, self.now),
            }
        }
        if let Some(input) = input {
            self.give(host, input);
        }
    }

    /// Gives a broker an input and does what it asks for.
    pub(crate) fn give(&mut self, host: usize, input: Input) {
        let timer = matches!(input, Input::Timer);
        if matches!(input, Input::LinkUp { .. } | Input::LinkDown { .. }) {
            self.trace(host, &input);
        }
        let mut outputs = std::mem::take(&mut self.outputs);
        if let Some(core) = &mut self.hosts[host].core {
            core.handle(input, self.now, &mut outputs);
        }
        for output in outputs.drain(..) {
            self.trace(host, &output);
            self.perform(host, output);
        }
        self.outputs = outputs;
        self.tell_at_once(MOST_WORDS);
        self.note_waiting(host);
        self.publish_echoes();
        // A timer that asks for the very moment it was given is let go on, but not for ever at one moment.
        let soonest = if timer { self.now + Duration::from_micros(1) } else { self.now };
        self.set_timer(host, soonest);
    }

    /// Lets a broker's timer ring when it wants.
    fn set_timer(&mut self, number: usize, soonest: Time) {
        let host = &mut self.hosts[number];
        let Some(at) = host.core.as_ref().and_then(Broker::wake_at) else { return };
        let at = at.max(soonest);
        if host.wake.is_none_or(|wake| at < wake) {
            host.wake = Some(at);
            let life = host.life;
            self.schedule(at, Happening::Wake { host: number, life });
        }
    }

    /// A broker has just started.
    pub(crate) fn restart_timer(&mut self, host: usize) {
        self.hosts[host].wake = None;
        self.set_timer(host, self.now);
    }

    /// A line in the trace about a broker.
    pub(crate) fn trace(&mut self, host: usize, what: &dyn Debug) {
        let Some(trace) = &mut self.trace else { return };
        let written = writeln!(trace, "{} {} {what:?}", self.now.0, self.hosts[host].name);
        if let Err(error) = written {
            self.trace = None;
            self.complain(format!("the trace cannot be written: {error}"));
        }
    }

    /// A line in the trace about a link.
    pub(crate) fn trace_link(&mut self, link: usize, what: &dyn Debug) {
        let [from, to] = self.edges[link].hosts;
        self.trace(from, &(what, self.hosts[to].name.clone()));
    }

    /// Runs until a moment.
    pub fn run_until(&mut self, moment: Time) {
        while self.queue.first_key_value().is_some_and(|((at, _), _)| *at <= moment) {
            self.step();
        }
        self.now = self.now.max(moment);
    }

    /// Runs for a while.
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    /// Runs until a request is answered, or the broker that was asked has crashed.
    ///
    /// # Errors
    /// [`Unsettled`] if no answer comes within `bound`.
    pub fn await_answer(
        &mut self,
        ticket: Ticket,
        bound: Duration,
    ) -> Result<Option<enroute_broker::Reply>, Unsettled> {
        let deadline = self.now + bound;
        while self.open.contains_key(&ticket) {
            if self.now > deadline {
                return Err(Unsettled::Busy { seconds: bound.as_secs() });
            }
            if !self.step() {
                return Err(Unsettled::Stuck { open: self.open.len() });
            }
        }
        Ok(self.replies.remove(&ticket))
    }

    /// Runs until the network has come to rest: nothing is under way, no request is open, and for `quiet` of virtual time
    /// no broker has had anything to say. Then all publications are judged, and what the network did with those of calm
    /// times is checked. Gives the time it took until the last thing happened.
    ///
    /// # Errors
    /// [`Unsettled`] if that is not so after `bound` of virtual time.
    pub fn settle(&mut self, quiet: Duration, bound: Duration) -> Result<Duration, Unsettled> {
        let start = self.now;
        let deadline = start + bound;
        loop {
            let next = self.queue.first_key_value().map(|((at, _), _)| *at);
            if self.work == 0 && self.open.is_empty() && !self.a_leaf_may_attach() {
                let quiet_at = self.active.max(start) + quiet;
                if next.is_none_or(|next| next > quiet_at) {
                    self.now = self.now.max(quiet_at);
                    break;
                }
            }
            match next {
                None => return Err(Unsettled::Stuck { open: self.open.len() }),
                Some(next) if next > deadline => return Err(Unsettled::Busy { seconds: bound.as_secs() }),
                Some(_) => self.step(),
            };
        }
        let took = self.active.since(start);
        self.judge();
        self.calm = true;
        Ok(took)
    }

    fn judge(&mut self) {
        let homes: Vec<_> = self.clients.iter().map(|client| (client.host, self.hosts[client.host].id)).collect();
        let brokers: Vec<BrokerId> = self.hosts.iter().map(|host| host.id).collect();
        self.check_copies();
        let park = self.settings.config.park;
        let leaves: BTreeSet<usize> = self.settings.uplinks.keys().copied().collect();
        let truth = Truth { paths: &self.paths, homes: &homes, brokers: &brokers, leaves: &leaves, park };
        let crossed = self.oracle.judge(truth);
        self.paths.forget();
        self.check_settled();
        self.check_leaves();
        self.check_forgotten();
        self.check_crossings(&crossed);
    }

    /// Something is about to change what the network must do.
    pub(crate) fn disturb(&mut self) {
        self.calm = false;
        self.oracle.book.tick();
        self.oracle.disturb();
    }

    /// The links of the core that are up, with what they cost.
    pub(crate) fn graph(&self) -> Graph {
        self.graph_of(|edge| !edge.uplink)
    }

    /// All links that are up, those of leaves to their uplinks among them.
    pub(crate) fn whole_graph(&self) -> Graph {
        self.graph_of(|_| true)
    }

    fn graph_of(&self, which: impl Fn(&Edge) -> bool) -> Graph {
        let links = self.connections.values().filter(|connection| connection.carries()).filter_map(|connection| {
            let edge = &self.edges[connection.edge];
            (!edge.is_loop() && which(edge)).then_some((edge.hosts, edge.cost()))
        });
        Graph::new(self.hosts.len(), links)
    }
}
