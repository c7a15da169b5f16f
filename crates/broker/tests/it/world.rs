//! A few brokers on virtual time, joined by links that take ten milliseconds each way.

use enroute_broker::*;
use enroute_filter::{Event, Filter};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How long a message is under way.
pub(crate) const DELAY: Duration = Duration::from_millis(10);

/// Something on its way to a broker.
enum Travelling {
    Control(Message),
    Event(EventFrame),
}

/// A connection between two brokers: the link number at each end.
#[derive(Clone, Copy)]
struct Connection {
    ends: [(BrokerId, LinkId); 2],
    /// Whether one end has found it dead, and the other not.
    lost: bool,
}

/// What a client has been given.
#[derive(Default)]
pub(crate) struct Inbox {
    pub(crate) deliveries: Vec<(EventId, Event, Vec<Arc<str>>)>,
    pub(crate) replies: BTreeMap<u64, Reply>,
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) brokers: BTreeMap<BrokerId, Broker>,
    pub(crate) names: BTreeMap<BrokerId, String>,
    incarnations: BTreeMap<BrokerId, u64>,
    connections: Vec<Connection>,
    /// Under way, by arrival and then by the order of sending: the broker and the link it arrives at.
    travelling: BTreeMap<(Time, u64), (BrokerId, LinkId, Travelling)>,
    sent: u64,
    last_link: u64,
    dials: u64,
    last_request: u64,
    pub(crate) inboxes: BTreeMap<(BrokerId, ClientId), Inbox>,
    pub(crate) notices: Vec<(BrokerId, Notice)>,
    pub(crate) stopped: BTreeSet<BrokerId>,
    /// Every event copy that crossed a link: from, to, event.
    pub(crate) crossings: Vec<(BrokerId, BrokerId, EventId)>,
    /// A line for each output, if a transcript is wanted.
    pub(crate) transcript: Option<Vec<String>>,
    pub(crate) config: Config,
}

impl World {
    pub(crate) fn new() -> World {
        World {
            now: Time(0),
            brokers: BTreeMap::new(),
            names: BTreeMap::new(),
            incarnations: BTreeMap::new(),
            connections: Vec::new(),
            travelling: BTreeMap::new(),
            sent: 0,
            last_link: 0,
            dials: 0,
            last_request: 0,
            inboxes: BTreeMap::new(),
            notices: Vec::new(),
            stopped: BTreeSet::new(),
            crossings: Vec::new(),
            transcript: None,
            config: Config::default(),
        }
    }

    /// Starts a core broker, in its next life if it had one; its configured peers count as tried at once.
    pub(crate) fn start(&mut self, name: &str) -> BrokerId {
        self.start_with(name, self.config.clone())
    }

    /// Starts a leaf broker, likewise.
    pub(crate) fn start_leaf(&mut self, name: &str) -> BrokerId {
        self.start_with(name, Config { leaf: true, ..self.config.clone() })
    }

    fn start_with(&mut self, name: &str, config: Config) -> BrokerId {
        let id = BrokerId::of_peer(name);
        let incarnation = self.incarnations.entry(id).or_insert(0);
        *incarnation += 1;
        let identity = Identity {
            id,
            peer_id: name.into(),
            incarnation: *incarnation,
            start_nonce: *incarnation,
            addresses: vec![],
        };
        self.start_as(identity, config);
        self.input(id, Input::PeersTried);
        id
    }

    /// Starts a broker under any identity.
    pub(crate) fn start_as(&mut self, identity: Identity, config: Config) {
        self.names.insert(identity.id, identity.peer_id.to_string());
        self.brokers.insert(identity.id, Broker::new(identity, config, self.now));
    }

    /// A broker dies without a word; its neighbours find the links dead at once.
    pub(crate) fn kill(&mut self, id: BrokerId) {
        self.brokers.remove(&id);
        self.inboxes.retain(|&(broker, _), _| broker != id);
        let (dead, alive): (Vec<_>, Vec<_>) =
            self.connections.iter().copied().partition(|connection| connection.ends.iter().any(|end| end.0 == id));
        self.connections = alive;
        for connection in dead {
            for (broker, link) in connection.ends {
                self.drop_travelling(broker, link);
                if broker != id {
                    self.input(broker, Input::LinkDown { link, unsent: vec![] });
                }
            }
        }
    }

    /// A connection dialled by `from` comes up at both ends.
    pub(crate) fn link(&mut self, from: BrokerId, to: BrokerId) {
        self.link_with_cost(from, to, 1);
    }

    pub(crate) fn link_with_cost(&mut self, from: BrokerId, to: BrokerId, cost: u32) {
        self.connect(from, to, cost, [Role::Core, Role::Core]);
    }

    /// A leaf's connection to an uplink comes up at both ends.
    pub(crate) fn attach(&mut self, leaf: BrokerId, parent: BrokerId) {
        self.connect(leaf, parent, 1, [Role::Leaf, Role::Parent]);
    }

    fn connect(&mut self, from: BrokerId, to: BrokerId, cost: u32, roles: [Role; 2]) {
        self.dials += 1;
        self.last_link += 2;
        let ends = [(from, LinkId(self.last_link - 1)), (to, LinkId(self.last_link))];
        self.connections.push(Connection { ends, lost: false });
        for ((end, link), (other, _), role) in [(ends[0], ends[1], roles[1]), (ends[1], ends[0], roles[0])] {
            let neighbour = Neighbour {
                broker: other,
                role,
                peer_id: self.names[&other].as_str().into(),
                incarnation: self.brokers[&other].incarnation(),
                start_nonce: self.incarnations.get(&other).copied().unwrap_or(0),
                dialled_by: from,
                dial: self.dials,
                cost,
                told_incarnation: self.brokers[&end].incarnation(),
            };
            self.input(end, Input::LinkUp { link, neighbour });
        }
    }

    /// All connections between two brokers break; what is under way on them is lost, and both ends know at once.
    pub(crate) fn cut(&mut self, a: BrokerId, b: BrokerId) {
        let joins = |connection: &Connection| connection.ends.iter().all(|end| end.0 == a || end.0 == b);
        let (dead, alive): (Vec<_>, Vec<_>) = self.connections.iter().copied().partition(joins);
        self.connections = alive;
        for (broker, link) in dead.into_iter().flat_map(|connection| connection.ends) {
            self.drop_travelling(broker, link);
            self.input(broker, Input::LinkDown { link, unsent: vec![] });
        }
    }

    /// `a` finds its connection to `b` dead; `b` has not noticed, and what it sends into it is lost.
    pub(crate) fn lose(&mut self, a: BrokerId, b: BrokerId) {
        let joins = |connection: &Connection| connection.ends.iter().all(|end| end.0 == a || end.0 == b);
        for connection in self.connections.iter_mut().filter(|connection| joins(connection)) {
            connection.lost = true;
        }
        let lost: Vec<Connection> = self.connections.iter().copied().filter(joins).collect();
        for (broker, link) in lost.into_iter().flat_map(|connection| connection.ends) {
            self.drop_travelling(broker, link);
            if broker == a {
                self.input(a, Input::LinkDown { link, unsent: vec![] });
            }
        }
    }

    fn drop_travelling(&mut self, broker: BrokerId, link: LinkId) {
        self.travelling.retain(|_, (to, over, _)| (*to, *over) != (broker, link));
    }

    /// Runs until nothing is under way, timers included that come due meanwhile.
    pub(crate) fn run(&mut self) {
        while let Some(&(at, _)) = self.travelling.keys().next() {
            self.run_until(at);
        }
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    fn run_until(&mut self, end: Time) {
        loop {
            let arrival = self.travelling.keys().next().map(|&(at, _)| at);
            let wake = self.brokers.iter().filter_map(|(&id, broker)| Some((broker.wake_at()?, id))).min();
            match (arrival, wake) {
                (Some(at), wake) if at <= end && wake.is_none_or(|(wake, _)| at <= wake) => {
                    let (_, (broker, link, what)) = self.travelling.pop_first().expect("there is a first");
                    self.now = self.now.max(at);
                    let input = match what {
                        Travelling::Control(message) => Input::Message { link, message },
                        Travelling::Event(frame) => Input::Event { link, frame },
                    };
                    self.input(broker, input);
                }
                (_, Some((at, broker))) if at <= end => {
                    self.now = self.now.max(at);
                    self.input(broker, Input::Timer);
                }
                (_, _) => break,
            }
        }
        self.now = self.now.max(end);
    }

    pub(crate) fn input(&mut self, id: BrokerId, input: Input) {
        let Some(broker) = self.brokers.get_mut(&id) else { return };
        let mut out = Vec::new();
        broker.handle(input, self.now, &mut out);
        for output in out {
            self.output(id, output);
        }
    }

    fn output(&mut self, id: BrokerId, output: Output) {
        if self.transcript.is_some() {
            let line = crate::transcript::describe(self, id, &output);
            self.transcript.get_or_insert_default().push(line);
        }
        match output {
            Output::Send { link, message } => self.travel(id, link, Travelling::Control(message)),
            Output::Forward { link, frame } => self.travel(id, link, Travelling::Event(frame)),
            Output::Deliver { client, delivery } => {
                let event =
                    Event::from_bytes(delivery.event, &self.config.limits).expect("delivered events are checked");
                let inbox = self.inboxes.entry((id, client)).or_default();
                inbox.deliveries.push((delivery.id, event, delivery.subscriptions.to_vec()));
            }
            Output::Reply { client, request, reply } => {
                self.inboxes.entry((id, client)).or_default().replies.insert(request.0, reply);
            }
            Output::CloseLink { link, reason: _ } => self.close(id, link),
            Output::StoreIncarnation(incarnation) => {
                self.incarnations.insert(id, incarnation);
            }
            Output::IdentityInUse => {
                self.stopped.insert(id);
            }
            Output::Notice(notice) => self.notices.push((id, notice)),
        }
    }

    /// One end closes: what it has sent still arrives, then the other end learns of it.
    fn close(&mut self, id: BrokerId, link: LinkId) {
        let Some(index) = self.connections.iter().position(|connection| connection.ends.contains(&(id, link))) else {
            return;
        };
        let connection = self.connections.remove(index);
        for (broker, link) in connection.ends {
            if broker != id || connection.ends[0].0 == connection.ends[1].0 {
                self.input(broker, Input::LinkDown { link, unsent: vec![] });
            }
        }
    }

    pub(crate) fn peer_of(&self, id: BrokerId, link: LinkId) -> Option<(BrokerId, LinkId)> {
        let connection = self.connections.iter().find(|connection| connection.ends.contains(&(id, link)))?;
        connection.ends.iter().copied().find(|&end| end != (id, link))
    }

    fn travel(&mut self, from: BrokerId, link: LinkId, what: Travelling) {
        let lost = |connection: &Connection| connection.lost && connection.ends.contains(&(from, link));
        let Some((to, over)) = self.peer_of(from, link) else { return };
        if self.connections.iter().any(lost) {
            return;
        }
        if let Travelling::Event(frame) = &what {
            self.crossings.push((from, to, frame.id));
        }
        self.sent += 1;
        self.travelling.insert((self.now + DELAY, self.sent), (to, over, what));
    }

    pub(crate) fn command(&mut self, broker: BrokerId, client: u64, command: Command) -> u64 {
        self.last_request += 1;
        let (client, request) = (ClientId(client), RequestId(self.last_request));
        self.input(broker, Input::Command { client, request, command });
        self.last_request
    }

    pub(crate) fn subscribe(&mut self, broker: BrokerId, client: u64, name: &str, filter: &str) -> u64 {
        let filter = Filter::parse(filter).expect("a filter");
        self.command(broker, client, Command::Subscribe { name: name.into(), filter })
    }

    pub(crate) fn publish(&mut self, broker: BrokerId, client: u64, event: Event) -> u64 {
        self.last_request += 1;
        let (client, request) = (ClientId(client), RequestId(self.last_request));
        self.input(broker, Input::Publish { client, request, event });
        self.last_request
    }

    /// The answer to a request, once there is one.
    pub(crate) fn reply(&self, broker: BrokerId, client: u64, request: u64) -> Option<&Reply> {
        self.inboxes.get(&(broker, ClientId(client)))?.replies.get(&request)
    }

    /// Lets time pass until a request is answered.
    pub(crate) fn answer(&mut self, broker: BrokerId, client: u64, request: u64) -> Reply {
        let give_up = self.now + Duration::from_secs(60);
        while self.reply(broker, client, request).is_none() {
            assert!(self.now < give_up, "request {request} at {} is not answered", self.names[&broker]);
            self.advance(Duration::from_millis(1));
        }
        self.reply(broker, client, request).expect("checked").clone()
    }

    pub(crate) fn deliveries(&self, broker: BrokerId, client: u64) -> &[(EventId, Event, Vec<Arc<str>>)] {
        self.inboxes.get(&(broker, ClientId(client))).map_or(&[], |inbox| &inbox.deliveries)
    }

    /// What a broker says of itself.
    pub(crate) fn status(&mut self, broker: BrokerId) -> Status {
        self.brokers.get_mut(&broker).expect("it runs").status()
    }

    /// A line of brokers, linked and settled.
    pub(crate) fn line(&mut self, length: usize) -> Vec<BrokerId> {
        let brokers: Vec<BrokerId> = (0..length).map(|index| self.start(&format!("b{index}"))).collect();
        for pair in brokers.windows(2) {
            self.link(pair[0], pair[1]);
        }
        self.run();
        self.advance(Duration::from_secs(1));
        brokers
    }
}

/// An event with one integer attribute.
pub(crate) fn event(attribute: &str, value: i64) -> Event {
    Event::builder().attribute(attribute, value).build().expect("an event")
}
