//! The clients of this broker: their subscriptions and advertisements.

use crate::broker::Broker;
use crate::interest::LocalInterest;
use crate::waits::Asker;
use crate::{ClientId, Command, Delivery, EventId, LinkId, Output, Refusal, Reply, RequestId};
use enroute_covering::RootDifference;
use enroute_filter::{Conjunction, Event, Filter};
use enroute_matcher::{Enindex, Owner, Scratch, SubscriptionId};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// As many subscriptions that match one event take no memory to be sorted.
const FEW: usize = 16;

/// One client.
#[derive(Debug, Default)]
struct Client {
    subscriptions: BTreeMap<Arc<str>, (SubscriptionId, Arc<Filter>)>,
    /// By name: the number under which the scope knows the advertisement, and its filter.
    advertisements: BTreeMap<Arc<str>, (u64, Arc<Filter>)>,
    /// Whether it publishes without having advertised.
    publishes_anything: bool,
}

impl Client {
    fn names(&self) -> usize {
        self.subscriptions.len() + self.advertisements.len()
    }

    fn may_publish(&self, event: &Event) -> bool {
        self.advertisements.is_empty() || self.advertisements.values().any(|(_, filter)| filter.matches(event))
    }
}

/// Whose something in the matcher is.
#[derive(Debug)]
enum Subscriber {
    /// A client's, under its own name for it, which is the only one of a list: mostly nothing else of the client's matches.
    Client(ClientId, Arc<[Arc<str>]>),
    /// The leaf broker's at the other end of a link.
    Leaf(LinkId),
}

/// All clients, and the matcher over their subscriptions and what the leaf brokers below want.
#[derive(Default)]
pub(crate) struct Clients {
    clients: BTreeMap<ClientId, Client>,
    subscribers: BTreeMap<SubscriptionId, Subscriber>,
    matcher: Enindex,
    scratch: Scratch,
    /// Room for the matcher's answer, kept from event to event.
    matching: Vec<SubscriptionId>,
    /// Numbers subscriptions, advertisements, and what leaves say.
    last: u64,
}

impl Clients {
    pub(crate) fn count(&self) -> usize {
        self.clients.len()
    }

    pub(crate) fn subscriptions(&self) -> usize {
        self.clients.values().map(|client| client.subscriptions.len()).sum()
    }

    pub(crate) fn advertisements(&self) -> usize {
        self.clients.values().map(|client| client.advertisements.len()).sum()
    }

    /// The last number given.
    pub(crate) fn last_id(&mut self) -> &mut u64 {
        &mut self.last
    }

    /// Delivers an event to the clients that want it, one delivery for each. Gives the links to the leaf brokers that want it.
    pub(crate) fn deliver(&mut self, id: EventId, event: &Event, out: &mut Vec<Output>) -> BTreeSet<LinkId> {
        self.matcher.matches(event, &mut self.scratch, &mut self.matching);
        let (mut leaves, mut names) = (BTreeSet::new(), SmallVec::<[_; FEW]>::new());
        for subscriber in self.matching.iter().filter_map(|subscription| self.subscribers.get(subscription)) {
            match subscriber {
                Subscriber::Client(client, name) => names.push((*client, name)),
                Subscriber::Leaf(link) => {
                    leaves.insert(*link);
                }
            }
        }
        names.sort_unstable();
        for names in names.chunk_by(|(one, _), (other, _)| one == other) {
            let (client, first) = names[0];
            let subscriptions = match names {
                [_] => Arc::clone(first),
                names => names.iter().flat_map(|(_, name)| name.iter().cloned()).collect(),
            };
            let delivery = Delivery { id, event: event.as_bytes().clone(), subscriptions };
            out.push(Output::Deliver { client, delivery });
        }
        leaves
    }

    /// Whether anybody here wants an event.
    pub(crate) fn want(&mut self, event: &Event) -> bool {
        self.matcher.matches(event, &mut self.scratch, &mut self.matching);
        !self.matching.is_empty()
    }

    /// A leaf wants this, known by that id.
    pub(crate) fn insert_of_leaf(&mut self, link: LinkId, id: SubscriptionId, conjunction: &Conjunction) {
        self.matcher.insert(id, Owner(link.0), &Filter::from(conjunction.clone()));
        self.subscribers.insert(id, Subscriber::Leaf(link));
    }

    /// A leaf does not want this any more.
    pub(crate) fn remove_of_leaf(&mut self, id: SubscriptionId) {
        self.matcher.remove(id);
        self.subscribers.remove(&id);
    }

    fn insert_subscription(
        &mut self,
        client: ClientId,
        name: &Arc<str>,
        filter: &Arc<Filter>,
        interest: &mut LocalInterest,
    ) -> RootDifference {
        let mut roots = RootDifference::default();
        self.last += 1;
        let id = SubscriptionId(self.last);
        self.matcher.insert(id, Owner(client.0), filter);
        for conjunction in filter.conjunctions() {
            roots.apply(interest.insert(id, conjunction));
        }
        self.subscribers.insert(id, Subscriber::Client(client, [name.clone()].into()));
        let subscriptions = &mut self.clients.entry(client).or_default().subscriptions;
        if let Some((replaced, filter)) = subscriptions.insert(name.clone(), (id, filter.clone())) {
            self.remove_subscription(replaced, &filter, interest, &mut roots);
        }
        roots
    }

    fn remove_subscription(
        &mut self,
        id: SubscriptionId,
        filter: &Filter,
        interest: &mut LocalInterest,
        roots: &mut RootDifference,
    ) {
        self.matcher.remove(id);
        self.subscribers.remove(&id);
        for conjunction in filter.conjunctions() {
            roots.apply(interest.remove(id, conjunction));
        }
    }
}

impl Broker {
    pub(crate) fn on_client_connected(&mut self, client: ClientId) {
        self.clients.clients.entry(client).or_default();
    }

    pub(crate) fn on_client_disconnected(&mut self, id: ClientId, out: &mut Vec<Output>) {
        self.drop_waits_of_client(id);
        let Some(client) = self.clients.clients.remove(&id) else { return };
        let mut roots = RootDifference::default();
        for (subscription, filter) in client.subscriptions.into_values() {
            self.clients.remove_subscription(subscription, &filter, &mut self.interest, &mut roots);
        }
        self.clients_interest_changed(&roots.into_change(), out);
        for (number, filter) in client.advertisements.into_values() {
            self.retire_advertisement(number, filter.conjunctions());
        }
        if client.publishes_anything {
            self.retire_anything();
        }
    }

    pub(crate) fn on_command(&mut self, client: ClientId, request: RequestId, command: Command, out: &mut Vec<Output>) {
        if let Err(refusal) = self.admit_client(client) {
            return refuse(client, request, refusal, out);
        }
        match command {
            Command::Subscribe { name, filter } => self.on_subscribe(client, request, name, filter, out),
            Command::Unsubscribe { name } => self.on_unsubscribe(client, request, name, out),
            Command::Advertise { name, filter } => self.on_advertise(client, request, name, filter, out),
            Command::Unadvertise { name } => self.on_unadvertise(client, request, name, out),
        }
    }

    /// A client is known from its first command at the latest.
    fn admit_client(&mut self, client: ClientId) -> Result<(), Refusal> {
        let limit = self.config.clients;
        if !self.clients.clients.contains_key(&client) && self.clients.count() >= limit {
            return Err(Refusal::Limit { what: "clients of this broker".into(), limit: limit as u64 });
        }
        self.on_client_connected(client);
        Ok(())
    }

    fn admit_name(&self, client: ClientId, taken: bool) -> Result<(), Refusal> {
        let limit = self.config.names_per_client;
        if !taken && self.clients.clients[&client].names() >= limit {
            let what = "subscriptions and advertisements of one client".into();
            return Err(Refusal::Limit { what, limit: limit as u64 });
        }
        Ok(())
    }

    fn on_subscribe(
        &mut self,
        id: ClientId,
        request: RequestId,
        name: Arc<str>,
        filter: Filter,
        out: &mut Vec<Output>,
    ) {
        let taken = self.clients.clients[&id].subscriptions.contains_key(&name);
        if let Err(refusal) = self.admit_name(id, taken) {
            return refuse(id, request, refusal, out);
        }
        let filter = Arc::new(filter);
        let roots = self.clients.insert_subscription(id, &name, &filter, &mut self.interest);
        self.clients_interest_changed(&roots.into_change(), out);
        self.ask_again_if_partial(out);
        self.await_force(Asker::Client(id, request), filter, out);
    }

    fn on_unsubscribe(&mut self, id: ClientId, request: RequestId, name: Arc<str>, out: &mut Vec<Output>) {
        let subscriptions = self.clients.clients.get_mut(&id).map(|client| &mut client.subscriptions);
        let Some((subscription, filter)) = subscriptions.and_then(|subscriptions| subscriptions.remove(&name)) else {
            return refuse(id, request, Refusal::UnknownName { name }, out);
        };
        let mut roots = RootDifference::default();
        self.clients.remove_subscription(subscription, &filter, &mut self.interest, &mut roots);
        self.clients_interest_changed(&roots.into_change(), out);
        out.push(Output::Reply { client: id, request, reply: Reply::Withdrawn });
    }

    fn on_advertise(
        &mut self,
        id: ClientId,
        request: RequestId,
        name: Arc<str>,
        filter: Filter,
        out: &mut Vec<Output>,
    ) {
        let taken = self.clients.clients[&id].advertisements.contains_key(&name);
        if let Err(refusal) = self.admit_name(id, taken) {
            return refuse(id, request, refusal, out);
        }
        self.clients.last += 1;
        let (number, filter) = (self.clients.last, Arc::new(filter));
        let client = self.clients.clients.entry(id).or_default();
        let replaced = client.advertisements.insert(name, (number, filter.clone()));
        let published_anything = std::mem::take(&mut client.publishes_anything);
        self.widen_scope(number, filter.conjunctions(), out);
        if let Some((replaced, filter)) = replaced {
            self.retire_advertisement(replaced, filter.conjunctions());
        }
        if published_anything {
            self.retire_anything();
        }
        self.await_view(Asker::Client(id, request), out);
    }

    fn on_unadvertise(&mut self, id: ClientId, request: RequestId, name: Arc<str>, out: &mut Vec<Output>) {
        let advertisements = self.clients.clients.get_mut(&id).map(|client| &mut client.advertisements);
        let Some((number, filter)) = advertisements.and_then(|advertisements| advertisements.remove(&name)) else {
            return refuse(id, request, Refusal::UnknownName { name }, out);
        };
        self.retire_advertisement(number, filter.conjunctions());
        out.push(Output::Reply { client: id, request, reply: Reply::Withdrawn });
    }

    /// Whether a client may publish this event; if so the scope allows for it from now on.
    pub(crate) fn admit_event(&mut self, id: ClientId, event: &Event, out: &mut Vec<Output>) -> Result<(), Refusal> {
        self.admit_client(id)?;
        let client = self.clients.clients.entry(id).or_default();
        if !client.may_publish(event) {
            return Err(Refusal::NotAdvertised);
        }
        if client.advertisements.is_empty() && !client.publishes_anything {
            client.publishes_anything = true;
            self.widen_scope_to_anything(out);
        }
        Ok(())
    }
}

/// Answers a request with a refusal.
pub(crate) fn refuse(client: ClientId, request: RequestId, refusal: Refusal, out: &mut Vec<Output>) {
    out.push(Output::Reply { client, request, reply: Reply::Refused(refusal) });
}
