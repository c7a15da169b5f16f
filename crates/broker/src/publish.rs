//! Publishing: an event is matched once, here, against the own subscriptions and against what all others want, and then
//! only follows its destinations.
//!
//! The view of what others want is complete when every reachable broker has answered the present scope, none is still
//! starting, and none is about to become reachable (a link to it is up, or listed by its other end alone). Until then publications wait, in order; one that has waited for [`Config::publish_wait`](crate::Config) goes
//! out all the same and its receipt says so. The brokers it waited for are not waited for again until they answer.

use crate::broker::Broker;
use crate::clients::refuse;
use crate::timers::Timer;
use crate::{BrokerId, ClientId, EventFrame, EventId, Output, Receipt, Refusal, Reply, RequestId, Time};
use enroute_filter::Event;
use std::collections::{BTreeSet, VecDeque};

/// A publication that waits.
#[derive(Debug)]
struct Publication {
    client: ClientId,
    request: RequestId,
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

    fn push(&mut self, publication: Publication) {
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
        if self.waiting.queue.is_empty() && self.may_publish_now() {
            return self.publish(client, request, &event, out);
        }
        if let Err(refusal) = self.admit_waiting(&event) {
            return refuse(client, request, refusal, out);
        }
        let deadline = self.now + self.config.publish_wait;
        self.waiting.push(Publication { client, request, event, deadline });
        self.time_publications();
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

    fn time_publications(&mut self) {
        self.timers.set(Timer::Publish, self.waiting.queue.front().map(|publication| publication.deadline));
    }

    /// Publishes what waits, as far as the view or the time it has waited allows.
    pub(crate) fn publish_waiting(&mut self, out: &mut Vec<Output>) {
        while self.may_publish_now() || self.waiting.queue.front().is_some_and(|first| first.deadline <= self.now) {
            let Some(Publication { client, request, event, deadline: _ }) = self.waiting.pop() else { break };
            self.publish(client, request, &event, out);
        }
        self.time_publications();
    }

    /// The first waiting publication has waited long enough: whoever has not answered is not waited for any more.
    pub(crate) fn on_publication_due(&mut self, out: &mut Vec<Output>) {
        self.overdue = self.unanswered();
        self.missing_answers = None;
        self.publish_waiting(out);
    }

    fn publish(&mut self, client: ClientId, request: RequestId, event: &Event, out: &mut Vec<Output>) {
        self.last_event += 1;
        let (origin, incarnation) = (self.identity.id, self.identity.incarnation);
        let id = EventId { origin, incarnation, sequence: self.last_event };
        let complete = self.view_is_complete();
        self.counters.published += 1;
        self.counters.published_incomplete += u64::from(!complete);
        self.deliver(id, event, out);
        let mut owners = std::mem::take(&mut self.owners);
        self.remote.interested(event, &mut owners);
        let destinations: Vec<BrokerId> = owners.iter().map(|owner| BrokerId(owner.0)).collect();
        self.owners = owners;
        let receipt = Receipt { id, destinations: destinations.len() as u32, complete };
        if !destinations.is_empty() {
            let hop_limit = self.hop_limit(&destinations);
            let frame = EventFrame { hop_limit, destinations, id, event: event.as_bytes().clone() };
            self.split(frame, None, out);
        }
        out.push(Output::Reply { client, request, reply: Reply::Published(receipt) });
    }

    /// Twice the way to the farthest destination, and some.
    fn hop_limit(&self, destinations: &[BrokerId]) -> u16 {
        let hops = destinations.iter().filter_map(|&broker| self.topology.route(broker)).map(|route| route.hops).max();
        hops.unwrap_or(0).saturating_mul(2).saturating_add(16)
    }

    /// The reachable brokers that have not said what they want of the present scope, or are still starting, and those about to
    /// be reachable.
    pub(crate) fn unanswered(&self) -> BTreeSet<BrokerId> {
        let version = self.scope.version();
        let answered = |broker: BrokerId| {
            let starting = self.topology.link_state(broker).is_some_and(|record| record.starting);
            !starting && self.remote.answered(broker, version)
        };
        let coming = self.links.neighbours().chain(self.topology.listed_by_reachable());
        let coming = coming.filter(|&broker| broker != self.identity.id && self.topology.route(broker).is_none());
        self.topology.reachable().filter(|&broker| !answered(broker)).chain(coming).collect()
    }

    /// Whether every reachable broker has said what it wants.
    pub(crate) fn view_is_complete(&mut self) -> bool {
        self.judge_view();
        self.missing_answers == Some((false, false))
    }

    /// Whether nobody is waited for any more.
    fn may_publish_now(&mut self) -> bool {
        self.judge_view();
        self.missing_answers.is_some_and(|(waited_for, _)| !waited_for)
    }

    /// Computes, unless nothing has changed, whether answers are waited for and whether any are missing at all.
    fn judge_view(&mut self) {
        if self.missing_answers.is_none() {
            let unanswered = self.unanswered();
            self.overdue.retain(|broker| unanswered.contains(broker));
            let waited_for = self.starting || unanswered.len() > self.overdue.len();
            self.missing_answers = Some((waited_for, self.starting || !unanswered.is_empty()));
        }
    }

    /// Something has changed that the completeness of the view depends on.
    pub(crate) fn view_changed(&mut self) {
        self.missing_answers = None;
        self.unsettled.view = true;
    }
}
