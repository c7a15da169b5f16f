//! Clients: what they ask, and what they are told.
//!
//! A client sits on its broker's machine, so that asking and hearing takes no time. When its broker comes back from a crash
//! it connects again and places again all that it wants, under the same names.

use crate::book::Verdict;
use crate::workload::Asked;
use crate::world::{Happening, World};
use enroute_broker::{ClientId, Command, Delivery, Input, Refusal, Reply, RequestId, Time};
use enroute_filter::{Event, Filter};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// A client, through all its connections.
pub(crate) struct Client {
    pub(crate) name: Arc<str>,
    /// The broker it belongs to.
    pub(crate) host: usize,
    pub(crate) session: Option<ClientId>,
    next_request: u64,
    /// Whether it has published without having advertised, which makes its broker's scope "anything" as long as it is
    /// connected and does not advertise.
    pub(crate) publishes_anything: bool,
    /// What it wants to stand, by name.
    pub(crate) subscriptions: BTreeMap<Arc<str>, Filter>,
    pub(crate) advertisements: BTreeMap<Arc<str>, Filter>,
    /// Deliveries that it has not read, and how many there may be, while it reads nothing.
    unread: Option<(VecDeque<Delivery>, usize)>,
    /// Counts the times that it has stopped reading.
    stalls: u64,
    /// Deliveries that fell out of its queue.
    pub(crate) dropped: u64,
    /// Whether it is away of its own will.
    away: bool,
}

impl Client {
    /// A delivery comes; the queue of a client that reads nothing drops the oldest when it is full.
    pub(crate) fn read(&mut self, delivery: Delivery) {
        let Some((queue, most)) = &mut self.unread else { return };
        queue.push_back(delivery);
        if queue.len() > *most {
            queue.pop_front();
            self.dropped += 1;
        }
    }
}

/// A request that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    client: ClientId,
    request: RequestId,
}

/// What an answer to a request will be about.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Subscription {
        number: u64,
        asked: Time,
    },
    Withdrawal {
        client: usize,
        name: Arc<str>,
    },
    Advertisement {
        asked: Time,
    },
    /// The number, the broker, and whether the client's advertisements allow it.
    Publication {
        number: usize,
        host: usize,
        allowed: bool,
    },
}

impl World {
    /// Adds a client to a broker and connects it if the broker is up. Clients are numbered from 0.
    pub fn add_client(&mut self, name: &str, host: usize) -> usize {
        let client = self.clients.len();
        self.clients.push(Client {
            name: name.into(),
            host,
            session: None,
            next_request: 1,
            publishes_anything: false,
            subscriptions: BTreeMap::new(),
            advertisements: BTreeMap::new(),
            unread: None,
            stalls: 0,
            dropped: 0,
            away: false,
        });
        self.oracle.book.add_client();
        self.on_connect(client, self.hosts[host].life);
        client
    }

    /// How many clients there are.
    pub fn client_count(&self) -> usize {
        self.clients.len()
    }

    /// The number of a client.
    pub fn client(&self, name: &str) -> Option<usize> {
        self.clients.iter().position(|client| *client.name == *name)
    }

    /// The names of the subscriptions that a client wants to stand.
    pub fn subscriptions(&self, client: usize) -> Vec<Arc<str>> {
        self.clients[client].subscriptions.keys().cloned().collect()
    }

    /// The names of the advertisements that a client wants to stand.
    pub fn advertisements(&self, client: usize) -> Vec<Arc<str>> {
        self.clients[client].advertisements.keys().cloned().collect()
    }

    /// What has been judged of a client's deliveries; see [`World::settle`].
    pub fn verdict(&self, client: usize) -> Verdict {
        self.oracle.book.verdicts()[client]
    }

    /// All verdicts together.
    pub fn total(&self) -> Verdict {
        self.oracle.book.total()
    }

    pub(crate) fn on_connect(&mut self, client: usize, life: u64) {
        let host = self.clients[client].host;
        if self.hosts[host].life != life || self.hosts[host].core.is_none() || self.clients[client].session.is_some() {
            return;
        }
        if self.clients[client].away {
            return;
        }
        let session = ClientId(self.next_session);
        self.clients[client].publishes_anything = false;
        self.next_session += 1;
        self.clients[client].session = Some(session);
        self.sessions.insert(session, client);
        self.give(host, Input::ClientConnected { client: session });
        for (name, filter) in self.clients[client].advertisements.clone() {
            self.advertise(client, &name, filter);
        }
        for (name, filter) in self.clients[client].subscriptions.clone() {
            self.subscribe(client, &name, filter);
        }
    }

    /// The clients of a crashed broker are cut off.
    pub(crate) fn disconnect_clients(&mut self, host: usize) {
        for client in 0..self.clients.len() {
            if self.clients[client].host == host {
                self.end_session(client);
            }
        }
        // What they asked, nobody answers any more.
        let sessions = &self.sessions;
        self.open.retain(|ticket, answer| match answer {
            Answer::Publication { host: at, .. } => *at != host,
            Answer::Subscription { .. } | Answer::Withdrawal { .. } | Answer::Advertisement { .. } => {
                sessions.contains_key(&ticket.client)
            }
        });
    }

    fn end_session(&mut self, client: usize) -> Option<ClientId> {
        let session = self.clients[client].session.take()?;
        self.sessions.remove(&session);
        if let Some(workload) = &mut self.workload {
            workload.disconnected(client, &self.clients[client]);
        }
        // What it has published goes out all the same, when the view is complete.
        let publication = |answer: &Answer| matches!(answer, Answer::Publication { .. });
        self.open.retain(|ticket, answer| ticket.client != session || publication(answer));
        self.oracle.book.session_ends(client);
        self.clients[client].unread = None;
        Some(session)
    }

    /// A client's connection ends; it stays away until [`World::connect`].
    pub fn disconnect(&mut self, client: usize) {
        self.clients[client].away = true;
        self.disturb();
        if let Some(session) = self.end_session(client) {
            self.give(self.clients[client].host, Input::ClientDisconnected { client: session });
        }
    }

    /// A client that was away connects again and places again all that it wants.
    pub fn connect(&mut self, client: usize) {
        if std::mem::take(&mut self.clients[client].away) {
            self.disturb();
            self.on_connect(client, self.hosts[self.clients[client].host].life);
        }
    }

    /// Connects all clients that are away.
    pub fn connect_all(&mut self) {
        (0..self.clients.len()).for_each(|client| self.connect(client));
    }

    /// A client reads nothing for a while: its queue takes so many deliveries, then drops the oldest.
    pub fn stall_client(&mut self, client: usize, span: Duration, queue: usize) {
        let stalled = &mut self.clients[client];
        stalled.stalls += 1;
        stalled.unread = Some((VecDeque::new(), queue));
        let stall = stalled.stalls;
        self.schedule(self.now + span, Happening::ReadOn { client, stall });
    }

    pub(crate) fn on_read_on(&mut self, client: usize, stall: u64) {
        let client = &mut self.clients[client];
        if client.stalls == stall {
            client.unread = None;
        }
    }

    /// Places a subscription, or replaces that of the name. None while the client's broker is down: it will be placed when
    /// that is up again.
    pub fn subscribe(&mut self, client: usize, name: &str, filter: Filter) -> Option<Ticket> {
        self.disturb();
        let name: Arc<str> = name.into();
        self.clients[client].subscriptions.insert(name.clone(), filter.clone());
        self.clients[client].session?;
        self.note(|| Asked::Subscribe { client, name: name.clone(), filter: filter.clone() });
        let number = self.oracle.book.subscribe(client, name.clone(), filter.clone());
        self.ask(client, Answer::Subscription { number, asked: self.now }, Command::Subscribe { name, filter })
    }

    /// Withdraws a subscription.
    pub fn unsubscribe(&mut self, client: usize, name: &str) -> Option<Ticket> {
        self.disturb();
        let name: Arc<str> = name.into();
        self.clients[client].subscriptions.remove(&name);
        self.clients[client].session?;
        self.note(|| Asked::Unsubscribe { client, name: name.clone() });
        self.oracle.book.withdraw(client, &name);
        self.ask(client, Answer::Withdrawal { client, name: name.clone() }, Command::Unsubscribe { name })
    }

    /// Withdraws all subscriptions of all clients.
    pub fn unsubscribe_all(&mut self) {
        for client in 0..self.clients.len() {
            for name in self.subscriptions(client) {
                self.unsubscribe(client, &name);
            }
        }
    }

    /// Makes an advertisement, or replaces that of the name; as [`World::subscribe`] else.
    pub fn advertise(&mut self, client: usize, name: &str, filter: Filter) -> Option<Ticket> {
        self.disturb();
        let name: Arc<str> = name.into();
        self.clients[client].advertisements.insert(name.clone(), filter.clone());
        self.clients[client].publishes_anything = false;
        self.ask(client, Answer::Advertisement { asked: self.now }, Command::Advertise { name, filter })
    }

    /// Withdraws an advertisement.
    pub fn unadvertise(&mut self, client: usize, name: &str) -> Option<Ticket> {
        self.disturb();
        let name: Arc<str> = name.into();
        self.clients[client].advertisements.remove(&name);
        self.ask(client, Answer::Advertisement { asked: self.now }, Command::Unadvertise { name })
    }

    /// Publishes an event, whose payload becomes the number of the publication. None while the broker is down.
    pub fn publish(&mut self, client: usize, event: &Event) -> Option<Ticket> {
        let session = self.clients[client].session?;
        let host = self.clients[client].host;
        self.oracle.book.tick();
        let calm = self.calm && self.reaches_core(host);
        let (number, event) = self.oracle.publish(client, host, self.now, (calm, self.tops()), event);
        self.oracle.would_flood(number, self.whole_graph().flooding(host));
        let ticket = self.ticket(client, session);
        let advertised = &self.clients[client].advertisements;
        self.clients[client].publishes_anything |= advertised.is_empty();
        let advertised = &self.clients[client].advertisements;
        let allowed = advertised.is_empty() || advertised.values().any(|filter| filter.matches(&event));
        if allowed {
            self.note_links();
            self.note(|| Asked::Publish { client, event: event.clone() });
        }
        self.open.insert(ticket, Answer::Publication { number, host, allowed });
        self.give(host, Input::Publish { client: session, request: ticket.request, event });
        Some(ticket)
    }

    pub(crate) fn note(&mut self, asked: impl FnOnce() -> Asked) {
        if let Some(workload) = &mut self.workload {
            workload.asked.push(asked());
        }
    }

    fn ticket(&mut self, client: usize, session: ClientId) -> Ticket {
        let request = RequestId(self.clients[client].next_request);
        self.clients[client].next_request += 1;
        Ticket { client: session, request }
    }

    fn ask(&mut self, client: usize, answer: Answer, command: Command) -> Option<Ticket> {
        let session = self.clients[client].session?;
        let ticket = self.ticket(client, session);
        self.open.insert(ticket, answer);
        self.give(self.clients[client].host, Input::Command { client: session, request: ticket.request, command });
        Some(ticket)
    }

    pub(crate) fn on_reply(&mut self, client: ClientId, request: RequestId, reply: Reply) {
        let ticket = Ticket { client, request };
        let Some(answer) = self.open.remove(&ticket) else {
            return self.complain(format!("an answer that nobody waits for: {client:?}, {request:?}, {reply:?}"));
        };
        match (&answer, &reply) {
            (&Answer::Subscription { number, asked }, Reply::InForce { .. }) => {
                self.check_promptness("a subscription", asked, self.settings.config.subscribe_wait);
                self.oracle.book.in_force(number);
                self.note_answer(number);
            }
            (&Answer::Advertisement { asked }, Reply::InForce { .. }) => {
                self.check_promptness("an advertisement", asked, self.settings.config.publish_wait);
            }
            (Answer::Withdrawal { client, name }, Reply::Withdrawn) => self.oracle.book.withdrawn(*client, name),
            (Answer::Publication { number, host, allowed: true }, Reply::Published(receipt)) => {
                self.oracle.answered(*number, *receipt, self.now);
                self.check_published(*host, receipt.id);
                if let Some(workload) = &mut self.workload {
                    workload.answered(receipt.id, *host);
                }
            }
            (Answer::Publication { number, allowed: false, .. }, Reply::Refused(Refusal::NotAdvertised)) => {
                self.oracle.refused(*number, self.now);
            }
            (Answer::Subscription { .. }, Reply::Partial { .. }) => self.partial += 1,
            (Answer::Advertisement { .. }, Reply::Withdrawn | Reply::Partial { .. }) => {}
            _ => self.complain(format!("an answer that does not fit: {answer:?}, {reply:?}")),
        }
        if !matches!(answer, Answer::Publication { .. }) {
            self.replies.insert(ticket, reply);
        }
    }
}
