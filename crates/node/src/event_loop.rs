//! The core's task: inputs in, outputs out, and never a wait for anybody.

use crate::clients::ClientEntry;
use crate::context::Shared;
use crate::identity::DataDir;
use crate::link::Link;
use crate::mesh::Known;
use crate::node::StopReason;
use crate::outbox::{Put, Queued, Wakes};
use enroute_broker::{
    Broker, BrokerId, ClientId, CloseReason, Command, EventFrame, Input, Interested, LeafMessage, LinkId, LinkState,
    Message, Output, RequestId, Time, WatchId,
};
use enroute_filter::{Event, Filter};
use enroute_session::NodeStatus;
use enroute_wire::{Goodbye, ShortText};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::time::Instant;

/// Control inputs that may wait; as many are handled between two batches of traffic.
pub(crate) const CONTROL: usize = 256;
/// Batches of traffic that may wait.
pub(crate) const TRAFFIC: usize = 32;
/// Writers are woken for what has been queued for them when a batch is through, or when it has taken so long; a writer that too much
/// could wait for before that, [at once](Wakes::AtOnce).
const BATCH_TIME: Duration = Duration::from_millis(1);
/// The time is looked at behind so many inputs: to look is cheap, and handling an event is not much more.
const CLOCKED: u32 = 8;
/// How long a subscriber or a link that pushes back can hold up those who publish.
const PUSH_BACK: Duration = Duration::from_secs(1);

/// What must not wait behind events.
pub(crate) enum ControlInput {
    LinkUp(Arc<Link>),
    Message {
        link: LinkId,
        message: Message,
    },
    /// Something has gone to a neighbour and come back.
    RoundTrip {
        neighbour: BrokerId,
        took: Duration,
    },
    /// The addresses to tell others are other ones now.
    Addresses(Vec<String>),
    /// What is known of all brokers.
    Known(oneshot::Sender<Vec<Known>>),
    /// There are links enough without the one to this neighbour.
    Drop(BrokerId),
    ClientConnected(Arc<ClientEntry>),
    PeersTried,
    Status(oneshot::Sender<NodeStatus>),
    Interested {
        event: Event,
        answer: oneshot::Sender<Interested>,
    },
    /// Follow, as long as anybody listens, whether some event that matches the filter is wanted.
    Watch {
        filter: Filter,
        interest: watch::Sender<Interested>,
    },
}

/// What links and clients bring, in order. A source goes on when its permit is dropped.
pub(crate) enum Traffic {
    Events { link: LinkId, frames: Vec<EventFrame>, permit: OwnedSemaphorePermit },
    Requests { client: ClientId, requests: Vec<ClientRequest>, permit: OwnedSemaphorePermit },
    LinkEnded(LinkId),
    ClientEnded(ClientId),
}

/// A client's request, checked.
pub(crate) enum ClientRequest {
    Command { request: RequestId, command: Command },
    Publish { request: RequestId, event: Event },
}

/// The core and where its outputs go.
pub(crate) struct EventLoop {
    context: Shared,
    broker: Broker,
    data_dir: Option<DataDir>,
    stopped: watch::Sender<Option<StopReason>>,
    started: Instant,
    links: BTreeMap<LinkId, Arc<Link>>,
    /// Links the core has closed, and which still drain.
    closing: BTreeMap<LinkId, Arc<Link>>,
    clients: BTreeMap<ClientId, Arc<ClientEntry>>,
    watches: BTreeMap<WatchId, watch::Sender<Interested>>,
    outputs: Vec<Output>,
    /// Links that cannot take what they must, to be reported when the outputs at hand are dispatched.
    overflowed: Vec<LinkId>,
    /// Who asks for those who publish to be held up.
    pushing_back: Option<Receiver>,
    /// Until when, at most, somebody is held up for whom.
    held: VecDeque<(Instant, Receiver)>,
    /// Whose writers are to be woken when the batch is through.
    to_wake: Vec<Receiver>,
}

/// A subscriber or a neighbour, for whom something is queued.
#[derive(Clone, Copy)]
enum Receiver {
    Client(ClientId),
    Link(LinkId),
}

impl EventLoop {
    pub(crate) fn new(
        context: Shared,
        broker: Broker,
        started: Instant,
        data_dir: Option<DataDir>,
        stopped: watch::Sender<Option<StopReason>>,
    ) -> EventLoop {
        EventLoop {
            context,
            broker,
            data_dir,
            stopped,
            started,
            links: BTreeMap::new(),
            closing: BTreeMap::new(),
            clients: BTreeMap::new(),
            watches: BTreeMap::new(),
            outputs: Vec::new(),
            overflowed: Vec::new(),
            pushing_back: None,
            held: VecDeque::new(),
            to_wake: Vec::new(),
        }
    }

    /// Runs until the node is stopped and all links and clients have ended.
    pub(crate) async fn run(mut self, mut control: mpsc::Receiver<ControlInput>, mut traffic: mpsc::Receiver<Traffic>) {
        let stopping = self.context.stopping.clone();
        loop {
            let wake = self.wake_at();
            tokio::select! {
                biased;
                () = stopping.cancelled() => break,
                Some(input) = control.recv() => {
                    self.on_control(input);
                    if let Ok(item) = traffic.try_recv() {
                        self.on_traffic_after_control(item, &mut control);
                    }
                }
                Some(item) = traffic.recv() => self.on_traffic_after_control(item, &mut control),
                () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {
                    self.handle(Input::Timer);
                }
            }
            self.release_held();
        }
        while let Ok(item) = traffic.try_recv() {
            self.on_traffic_after_control(item, &mut control);
        }
        self.say_goodbye();
        while !(self.links.is_empty() && self.closing.is_empty() && self.clients.is_empty()) {
            tokio::select! {
                Some(input) = control.recv() => self.on_last_control(input),
                Some(item) = traffic.recv() => self.on_last_traffic(item),
            }
        }
    }

    /// What a source has said by way of control before it sent this comes first: without a link, for one, its events make no
    /// sense.
    fn on_traffic_after_control(&mut self, item: Traffic, control: &mut mpsc::Receiver<ControlInput>) {
        for _ in 0..CONTROL {
            match control.try_recv() {
                Ok(input) => self.on_control(input),
                Err(_) => break,
            }
        }
        self.on_traffic(item);
    }

    fn on_control(&mut self, input: ControlInput) {
        match input {
            ControlInput::LinkUp(link) => {
                let input = Input::LinkUp { link: link.id, neighbour: link.neighbour.clone() };
                self.links.insert(link.id, link);
                self.handle(input);
            }
            ControlInput::RoundTrip { neighbour, took } => {
                let to_it = |link: &&Arc<Link>| link.neighbour.broker == neighbour;
                let links: Vec<LinkId> = self.links.values().filter(to_it).map(|link| link.id).collect();
                links.into_iter().for_each(|link| self.handle(Input::RoundTrip { link, took }));
            }
            ControlInput::Addresses(addresses) => self.handle(Input::Addresses(addresses)),
            ControlInput::Known(answer) => {
                let known = |(record, reachable): (&Arc<LinkState>, bool)| Known { record: record.clone(), reachable };
                // Whoever has stopped waiting does not mind.
                let _ = answer.send(self.broker.members().map(known).collect());
            }
            ControlInput::Drop(neighbour) => self.drop_link(neighbour),
            ControlInput::Message { link, message } => self.on_message(link, message),
            ControlInput::ClientConnected(entry) => {
                let client = entry.id;
                self.clients.insert(client, entry);
                self.handle(Input::ClientConnected { client });
            }
            ControlInput::PeersTried => self.handle(Input::PeersTried),
            // Whoever has stopped waiting does not mind.
            ControlInput::Status(answer) => drop(answer.send(self.status())),
            ControlInput::Interested { event, answer } => {
                let now = self.now();
                // Whoever has stopped waiting does not mind here either.
                let _ = answer.send(self.broker.interested(&event, now));
            }
            ControlInput::Watch { filter, interest } => self.watch(filter, interest),
        }
    }

    fn on_message(&mut self, link: LinkId, message: Message) {
        let path = match &message {
            Message::Leaf(LeafMessage::Path(path)) => Some(path.clone()),
            _ => None,
        };
        self.handle(Input::Message { link, message });
        // If the core did not like the path, the link is closed, and that is said.
        if let Some(path) = path.filter(|_| self.links.contains_key(&link)) {
            let path = path.iter().map(BrokerId::to_string).collect::<Vec<_>>().join(", ");
            if path.is_empty() {
                tracing::warn!(
                    link = link.0,
                    "the uplink has lost its path to the core; waiting a little for another one"
                );
            } else {
                tracing::info!(link = link.0, path, "attached: this is the way to the core");
            }
        }
    }

    fn on_traffic(&mut self, item: Traffic) {
        match item {
            Traffic::Events { link, frames, permit } => {
                self.handle_batch(frames.into_iter().map(|frame| Input::Event { link, frame }));
                self.give_back(permit);
            }
            Traffic::Requests { client, requests, permit } => {
                self.handle_batch(requests.into_iter().map(|request| match request {
                    ClientRequest::Command { request, command } => Input::Command { client, request, command },
                    ClientRequest::Publish { request, event } => Input::Publish { client, request, event },
                }));
                self.give_back(permit);
            }
            Traffic::LinkEnded(link) => self.on_link_ended(link),
            Traffic::ClientEnded(client) => {
                if self.clients.remove(&client).is_some() {
                    self.handle(Input::ClientDisconnected { client });
                }
            }
        }
    }

    fn on_link_ended(&mut self, link: LinkId) {
        let (ended, known) = match self.links.remove(&link) {
            Some(ended) => (Some(ended), true),
            None => (self.closing.remove(&link), false),
        };
        let unsent = ended.map(|ended| ended.take_unsent()).unwrap_or_default();
        // Of a link it has closed itself the core need only know what did not get out any more.
        if known || !unsent.is_empty() {
            self.handle(Input::LinkDown { link, unsent });
        }
    }

    /// Lets a source go on, at once or when whoever pushes back has taken what waits.
    fn give_back(&mut self, permit: OwnedSemaphorePermit) {
        let Some(slow) = self.pushing_back.take() else { return };
        let until = Instant::now() + PUSH_BACK;
        match slow {
            Receiver::Client(client) => match self.clients.get(&client) {
                Some(entry) => entry.outbox.hold(permit, until),
                None => return,
            },
            Receiver::Link(link) => match self.links.get(&link) {
                Some(link) => link.hold(permit, until),
                None => return,
            },
        }
        self.held.push_back((until, slow));
    }

    fn release_held(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some((_, slow)) = self.held.pop_front_if(|(until, _)| *until <= now) {
            match slow {
                Receiver::Client(client) => {
                    self.clients.get(&client).into_iter().for_each(|entry| entry.outbox.release(now))
                }
                Receiver::Link(link) => self.links.get(&link).into_iter().for_each(|link| link.release(now)),
            }
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        let core = self.broker.wake_at().map(|time| self.started + Duration::from_micros(time.0));
        let held = self.held.front().map(|(until, _)| *until);
        core.into_iter().chain(held).min()
    }

    fn now(&self) -> Time {
        Time(u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn handle(&mut self, input: Input) {
        self.handle_at(input, self.now());
        self.wake_writers();
    }

    /// Inputs that have come together: to the core in the same moment, and what follows to each writer in one piece.
    fn handle_batch(&mut self, inputs: impl Iterator<Item = Input>) {
        let now = self.now();
        let mut woken = Instant::now();
        for (number, input) in (1..).zip(inputs) {
            self.handle_at(input, now);
            if number % CLOCKED == 0 && woken.elapsed() >= BATCH_TIME {
                self.wake_writers();
                woken = Instant::now();
            }
        }
        self.wake_writers();
    }

    fn wake_writers(&mut self) {
        for receiver in self.to_wake.drain(..) {
            match receiver {
                Receiver::Client(client) => self.clients.get(&client).into_iter().for_each(|entry| entry.outbox.wake()),
                Receiver::Link(link) => self.links.get(&link).into_iter().for_each(|link| link.wake()),
            }
        }
    }

    /// One input to the core, and all that follows.
    fn handle_at(&mut self, input: Input, now: Time) {
        self.broker.handle(input, now, &mut self.outputs);
        loop {
            let mut outputs = std::mem::take(&mut self.outputs);
            for output in outputs.drain(..) {
                self.dispatch(output);
            }
            self.outputs = outputs;
            let Some(link) = self.overflowed.pop() else { break };
            if let Some(ended) = self.links.remove(&link) {
                let unsent = ended.take_unsent();
                self.closing.insert(link, ended);
                self.broker.handle(Input::LinkDown { link, unsent }, now, &mut self.outputs);
            }
        }
        self.tell_watched();
    }

    fn watch(&mut self, filter: Filter, interest: watch::Sender<Interested>) {
        self.watches.retain(|&watch, interest| {
            let listened_to = !interest.is_closed();
            if !listened_to {
                self.broker.unwatch(watch);
            }
            listened_to
        });
        let watch = self.context.next_watch();
        self.broker.watch(watch, filter);
        self.watches.insert(watch, interest);
        self.tell_watched();
    }

    fn tell_watched(&mut self) {
        for (watch, interested) in self.broker.take_watched() {
            let interest = self.watches.get(&watch);
            if interest.is_none_or(|interest| interest.send(interested).is_err()) {
                self.broker.unwatch(watch);
                self.watches.remove(&watch);
            }
        }
    }

    fn dispatch(&mut self, output: Output) {
        match output {
            Output::Send { link, message } => {
                if let Some(link) = self.links.get(&link)
                    && !link.send(&message)
                {
                    self.overflowed.push(link.id);
                }
            }
            Output::Forward { link, frame } => {
                let Some(queued) = self.links.get(&link).map(|link| link.forward(&frame)) else { return };
                self.note_queued(queued, Receiver::Link(link));
            }
            Output::Deliver { client, delivery } => {
                let Some(queued) = self.clients.get(&client).map(|entry| entry.outbox.deliver(&delivery)) else {
                    return;
                };
                if queued.put == Put::CutOff {
                    tracing::warn!(client = client.0, "too much waits for this client: cut off");
                }
                self.note_queued(queued, Receiver::Client(client));
            }
            Output::Reply { client, request, reply } => {
                if self.clients.get(&client).is_some_and(|entry| entry.outbox.reply(request, reply)) {
                    self.to_wake.push(Receiver::Client(client));
                }
            }
            Output::CloseLink { link, reason } => self.close_link(link, reason),
            Output::StoreIncarnation(incarnation) => self.store_incarnation(incarnation),
            Output::IdentityInUse => {
                tracing::error!("somebody else keeps speaking as this broker: stopping");
                self.stopped.send_replace(Some(StopReason::IdentityInUse));
                self.context.stopping.cancel();
            }
            Output::Notice(notice) => tracing::warn!("{notice}"),
        }
    }

    fn note_queued(&mut self, queued: Queued, receiver: Receiver) {
        let Queued { put, wakes } = queued;
        if put == Put::PushBack {
            self.pushing_back = Some(receiver);
        }
        match wakes {
            Wakes::Nobody => {}
            Wakes::WithBatch => self.to_wake.push(receiver),
            Wakes::AtOnce => {
                self.to_wake.push(receiver);
                self.wake_writers();
            }
        }
    }

    fn close_link(&mut self, link: LinkId, reason: CloseReason) {
        let Some(closed) = self.links.remove(&link) else { return };
        let neighbour = closed.neighbour.broker;
        match &reason {
            CloseReason::Duplicate => tracing::debug!(link = link.0, %neighbour, %reason, "closing a link"),
            CloseReason::Violation(_)
            | CloseReason::Oneself
            | CloseReason::IdClash { .. }
            | CloseReason::OldIncarnation
            | CloseReason::NoPath
            | CloseReason::Cycle
            | CloseReason::Moved
            | CloseReason::Full { .. } => {
                tracing::warn!(link = link.0, %neighbour, %reason, "closing a link");
                self.context.note_refusal(closed.neighbour.peer_id.to_string(), reason.to_string());
            }
        }
        closed.close(Goodbye::Closed(reason));
        self.closing.insert(link, closed);
    }

    /// Closes a link that can be spared; what waits for it goes other ways.
    fn drop_link(&mut self, neighbour: BrokerId) {
        let Some(dropped) = self.links.values().find(|link| link.neighbour.broker == neighbour).cloned() else {
            return;
        };
        tracing::info!(link = dropped.id.0, %neighbour, "dropping a link: there are enough without it");
        dropped.close(Goodbye::Other(ShortText::clip("it has enough links, and there are other paths")));
        let unsent = dropped.take_unsent();
        self.links.remove(&dropped.id);
        self.handle(Input::LinkDown { link: dropped.id, unsent });
        self.closing.insert(dropped.id, dropped);
    }

    /// Stored before anybody hears of it: nothing is awaited between the core's decision and this.
    fn store_incarnation(&self, incarnation: u64) {
        if let Some(data_dir) = &self.data_dir
            && let Err(error) = data_dir.store_incarnation(incarnation)
        {
            tracing::error!(%error, "the incarnation cannot be stored: do not restart before this is mended");
        }
        self.context.incarnation.store(self.broker.incarnation().max(incarnation), Ordering::Release);
    }

    fn status(&mut self) -> NodeStatus {
        NodeStatus {
            broker: self.broker.status(),
            link_queues: self.links.values().map(|link| link.status()).collect(),
            clients: self.clients.values().map(|entry| entry.status()).collect(),
            ..NodeStatus::default()
        }
    }

    /// Ends all links and clients, in good order; what waits for them still goes out.
    fn say_goodbye(&mut self) {
        for entry in self.clients.values() {
            entry.outbox.finish(Goodbye::ShuttingDown);
        }
        for (id, link) in std::mem::take(&mut self.links) {
            link.close(Goodbye::ShuttingDown);
            self.closing.insert(id, link);
        }
    }

    fn on_last_control(&mut self, input: ControlInput) {
        match input {
            ControlInput::LinkUp(link) => {
                link.close(Goodbye::ShuttingDown);
                self.closing.insert(link.id, link);
            }
            ControlInput::ClientConnected(entry) => {
                entry.outbox.finish(Goodbye::ShuttingDown);
                self.clients.insert(entry.id, entry);
            }
            ControlInput::Message { .. }
            | ControlInput::RoundTrip { .. }
            | ControlInput::Addresses(_)
            | ControlInput::Known(_)
            | ControlInput::Drop(_)
            | ControlInput::PeersTried
            | ControlInput::Status(_)
            | ControlInput::Interested { .. }
            | ControlInput::Watch { .. } => {}
        }
    }

    fn on_last_traffic(&mut self, item: Traffic) {
        match item {
            Traffic::LinkEnded(link) => drop(self.closing.remove(&link)),
            Traffic::ClientEnded(client) => drop(self.clients.remove(&client)),
            Traffic::Events { .. } | Traffic::Requests { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests;
