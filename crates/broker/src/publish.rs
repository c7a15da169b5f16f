//! Publishing: an event is matched once, here, against the own subscriptions and against what all others want, and then
//! only follows its destinations.
//!
//! While the [view](crate::view) of what others want is not complete for the first of them, publications wait, in order; one that
//! has waited for [`Config::publish_wait`](crate::Config) goes out all the same and its receipt says so. The brokers it waited for
//! are not waited for again until they answer; a scope that is still to be told is, for it soon will be.
//!
//! What a leaf broker cannot match against all that others want goes up, unless it has a lease that says that nobody wants it.

use crate::broker::Broker;
use crate::clients::refuse;
use crate::forward::Reached;
use crate::timers::Timer;
use crate::{
    BrokerId, ClientId, EventFrame, EventId, LinkId, MAX_PATH, Output, Receipt, Refusal, Reply, RequestId, Time,
};
use enroute_filter::Event;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Who has published an event, as far as this broker knows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Publisher {
    /// An own client, which waits for the receipt.
    Client(ClientId, RequestId),
    /// Somebody below a leaf broker.
    Leaf(FromBelow),
}

/// What comes with an event from a leaf broker below.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FromBelow {
    /// The link to the leaf.
    pub(crate) link: LinkId,
    /// The id that it got where it was published.
    pub(crate) id: EventId,
    /// How often it may go further up.
    pub(crate) hop_limit: u16,
    /// Whether it has been here, but not beyond: who was below is above now, and kept it.
    pub(crate) again: bool,
}

/// How often an event may go from a leaf broker to its parent: while paths are being told, leaves may hang off each other in a
/// circle.
const MAX_UP: u16 = 2 * MAX_PATH as u16;

/// A publication that waits.
#[derive(Debug)]
struct Publication {
    publisher: Publisher,
    event: Event,
    deadline: Time,
}

/// All publications that wait for a complete view, in order.
#[derive(Debug, Default)]
pub(crate) struct WaitingPublications {
    queue: VecDeque<Publication>,
    bytes: usize,
}

impl WaitingPublications {
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    fn push(&mut self, mut publication: Publication) {
        publication.event = publication.event.unshared();
        self.bytes += publication.event.as_bytes().len();
        self.queue.push_back(publication);
    }

    fn pop(&mut self) -> Option<Publication> {
        let publication = self.queue.pop_front()?;
        self.bytes -= publication.event.as_bytes().len();
        Some(publication)
    }
}

impl Broker {
    pub(crate) fn on_publish(&mut self, client: ClientId, request: RequestId, event: Event, out: &mut Vec<Output>) {
        if let Err(refusal) = self.admit_event(client, &event, out) {
            return refuse(client, request, refusal, out);
        }
        if let Err(refusal) = self.publish_when_complete(Publisher::Client(client, request), event, out) {
            refuse(client, request, refusal, out);
        }
    }

    /// Publishes an event that has come up from a leaf.
    pub(crate) fn publish_from_leaf(&mut self, from: FromBelow, event: Event, out: &mut Vec<Output>) {
        if self.publish_when_complete(Publisher::Leaf(from), event, out).is_err() {
            self.counters.lost_overflow += 1;
        }
    }

    fn publish_when_complete(
        &mut self,
        publisher: Publisher,
        event: Event,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        if self.waiting.queue.is_empty() && self.may_publish_now(&event) {
            self.publish(publisher, &event, out);
            return Ok(());
        }
        self.admit_waiting(&event)?;
        let deadline = self.now + self.config.publish_wait;
        self.waiting.push(Publication { publisher, event, deadline });
        self.time_publications();
        Ok(())
    }

    /// Whether one more publication may wait.
    fn admit_waiting(&self, event: &Event) -> Result<(), Refusal> {
        let bytes = self.waiting.bytes + event.as_bytes().len();
        let (what, limit) = if self.waiting.len() >= self.config.waiting_publications {
            ("publications waiting for other brokers", self.config.waiting_publications)
        } else if bytes > self.config.waiting_bytes {
            ("bytes of publications waiting for other brokers", self.config.waiting_bytes)
        } else {
            return Ok(());
        };
        Err(Refusal::Limit { what: what.into(), limit: limit as u64 })
    }

    pub(crate) fn time_publications(&mut self) {
        let waiting = self.waiting.queue.front().map(|publication| publication.deadline);
        let kept = self.uplink.as_ref().filter(|uplink| !uplink.kept.is_empty()).and_then(|uplink| uplink.attached());
        let kept = kept.map(|parent| parent.since + self.config.publish_wait);
        self.timers.set(Timer::Publish, waiting.into_iter().chain(kept).min());
    }

    /// The events that wait here on their way up: those come up from leaves for the view to be complete, then those kept for an
    /// uplink. A crash now would lose them; what own clients have published and got no receipt for is not among them.
    pub fn waiting_to_go_up(&self) -> impl Iterator<Item = EventId> {
        let from_below = self.waiting.queue.iter().filter_map(|publication| match publication.publisher {
            Publisher::Client(..) => None,
            Publisher::Leaf(from) => Some(from.id),
        });
        from_below.chain(self.uplink.iter().flat_map(|uplink| uplink.kept.ids()))
    }

    /// Publishes what waits, as far as the view or the time it has waited allows.
    pub(crate) fn publish_waiting(&mut self, out: &mut Vec<Output>) {
        if self.waiting.queue.is_empty() && self.uplink.is_none() {
            return;
        }
        // What is kept was let go before, so that a scope that holds it has been told.
        if !self.waits_for_answers() {
            self.send_kept(out);
        }
        while let Some(Publication { event, deadline, .. }) = self.waiting.queue.front() {
            let (event, due) = (event.clone(), *deadline <= self.now);
            if !due && !self.may_publish_now(&event) {
                break;
            }
            let Some(Publication { publisher, .. }) = self.waiting.pop() else { break };
            self.publish(publisher, &event, out);
        }
        self.time_publications();
    }

    /// The first waiting publication has waited long enough: whoever has not answered is not waited for any more.
    pub(crate) fn on_publication_due(&mut self, out: &mut Vec<Output>) {
        self.wait_for_none_of_the_unanswered();
        self.send_kept(out);
        self.publish_waiting(out);
    }

    fn publish(&mut self, publisher: Publisher, event: &Event, out: &mut Vec<Output>) {
        let complete = self.view_is_complete_for(event);
        let (id, hop_limit, here) = match publisher {
            Publisher::Client(..) => {
                let id = self.next_event_id();
                (id, MAX_UP, self.deliver(id, event, None, out))
            }
            Publisher::Leaf(FromBelow { id, hop_limit, again: true, .. }) => (id, hop_limit, Reached::default()),
            Publisher::Leaf(FromBelow { link, id, hop_limit, again: false }) => {
                (id, hop_limit, self.deliver(id, event, Some(link), out))
            }
        };
        let beyond = match &self.uplink {
            None => self.send_to_interested(id, event, out),
            Some(_) => usize::from(self.send_event_up(id, hop_limit, event, out)),
        };
        if let Publisher::Client(client, request) = publisher {
            self.counters.published += 1;
            self.counters.published_incomplete += u64::from(!complete);
            let receipt = Receipt { id, destinations: (here.leaves + beyond) as u32, complete };
            out.push(Output::Reply { client, request, reply: Reply::Published(receipt) });
        }
    }

    fn next_event_id(&mut self) -> EventId {
        self.last_event += 1;
        let (origin, incarnation) = (self.identity.id, self.identity.incarnation);
        let id = EventId { origin, incarnation, sequence: self.last_event };
        if self.uplink.is_some() {
            // It may come back down when the uplink has changed.
            self.seen.is_new(id, self.now, self.config.seen);
        }
        id
    }

    /// Sends an event to the core brokers that want it, and says to how many.
    fn send_to_interested(&mut self, id: EventId, event: &Event, out: &mut Vec<Output>) -> usize {
        let mut owners = std::mem::take(&mut self.owners);
        self.remote.interested(event, &mut owners);
        let destinations: SmallVec<[BrokerId; 2]> = owners.iter().map(|owner| BrokerId(owner.0)).collect();
        self.owners = owners;
        let count = destinations.len();
        if !destinations.is_empty() {
            let frame = EventFrame { hop_limit: self.hop_limit(), destinations, id, event: event.as_bytes().clone() };
            self.split(frame, None, out);
        }
        count
    }

    /// No way is longer than there are brokers, whatever fails meanwhile; and some more for turns on the way.
    fn hop_limit(&self) -> u16 {
        u16::try_from(self.topology.len()).unwrap_or(u16::MAX).saturating_add(16)
    }
}
