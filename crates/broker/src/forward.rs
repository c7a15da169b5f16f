//! Events on their way: split by next hop, forwarded untouched, delivered at their destinations.
//!
//! A copy of an event names its destinations; of one event, each destination is in exactly one copy anywhere. So nothing
//! is ever delivered twice, however the brokers' tables differ while routes change; what differs is at most a detour.

use crate::broker::Broker;
use crate::publish::FromBelow;
use crate::timers::Timer;
use crate::{BrokerId, CloseReason, EventFrame, EventId, LinkId, Notice, Output, Time};
use bytes::Bytes;
use enroute_filter::Event;
use smallvec::{SmallVec, smallvec};
use std::collections::{BTreeMap, VecDeque};

/// What a parked event is reckoned to take besides its bytes and its destinations.
const PARKED_OVERHEAD: usize = 128;

/// An event for which there is no next hop, or only the neighbour it came from.
#[derive(Debug)]
struct ParkedEvent {
    frame: EventFrame,
    deadline: Time,
}

/// Events that wait for the tables to change, in order.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    events: VecDeque<ParkedEvent>,
    /// Sum of the reckoned sizes of `events`.
    bytes: usize,
}

/// What a parked event is reckoned to take: of many small ones, or of one with many destinations, the event is the least.
fn parked_size(frame: &EventFrame) -> usize {
    frame.event.len() + frame.destinations.len() * size_of::<BrokerId>() + PARKED_OVERHEAD
}

/// Whom an event has reached here.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reached {
    /// Clients that it was delivered to.
    pub(crate) clients: usize,
    /// Leaf brokers that it was sent down to.
    pub(crate) leaves: usize,
}

impl Parked {
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }
}

impl Broker {
    pub(crate) fn on_event(&mut self, link: LinkId, frame: EventFrame, out: &mut Vec<Output>) {
        if self.leaves.may_send(link) {
            self.on_event_from_leaf(link, frame, out);
        } else if self.is_uplink(link) {
            self.on_event_from_parent(link, frame, out);
        } else if self.uplink.is_some() || self.leaves.get(link).is_some() {
            // Of an attachment that is over, or not yet made.
            self.counters.strays += 1;
        } else {
            self.on_event_from_core(link, frame, out);
        }
    }

    fn on_event_from_core(&mut self, link: LinkId, mut frame: EventFrame, out: &mut Vec<Output>) {
        let from = self.links.get_mut(link).map(|link| {
            link.counts.events_received += 1;
            link.neighbour.broker
        });
        if let Ok(index) = frame.destinations.binary_search(&self.identity.id) {
            frame.destinations.remove(index);
            self.arrive(frame.id, frame.event.clone(), out);
        }
        if frame.destinations.is_empty() {
            return;
        }
        match frame.hop_limit.checked_sub(1) {
            Some(hop_limit) => self.split(EventFrame { hop_limit, ..frame }, from, out),
            None => self.counters.lost_hop_limit += frame.destinations.len() as u64,
        }
    }

    /// An event is at its destination: only here is it looked into.
    fn arrive(&mut self, id: EventId, event: Bytes, out: &mut Vec<Output>) {
        match Event::from_bytes(event, &self.config.limits) {
            Ok(event) => {
                let reached = self.deliver(id, &event, None, out);
                self.count_arrival(reached);
            }
            Err(error) => {
                let what = format!("event {id}: {error}");
                out.push(Output::Notice(Notice::Unreadable { broker: id.origin, what }));
            }
        }
    }

    /// An event has come up: it is published here too. Of each event there is one copy on its way up anywhere; what a leaf
    /// broker has seen before goes on up all the same, and a core broker does not see it twice.
    fn on_event_from_leaf(&mut self, link: LinkId, frame: EventFrame, out: &mut Vec<Output>) {
        if let Some(leaf) = self.leaves.get_mut(link) {
            leaf.counts.events_received += 1;
        }
        let origin = frame.id.origin;
        // A leaf cannot speak for the core. In a leaf broker, events may come round while paths are being told.
        let of_core = self.uplink.is_none() && (origin == self.identity.id || self.topology.route(origin).is_some());
        match self.for_oneself(&frame) {
            // Whoever sends it may have been sent it by the one who lies.
            Some(_) if self.uplink.is_none() && self.leaves.is_claimed(link, frame.id) => self.counters.strays += 1,
            Some(event) if !of_core => {
                let again = !self.seen.is_new(frame.id, self.now, self.config.seen);
                if again && self.uplink.is_none() {
                    self.counters.seen_again += 1;
                } else {
                    let hop_limit = frame.hop_limit;
                    self.publish_from_leaf(FromBelow { link, id: frame.id, hop_limit, again }, event, out);
                }
            }
            Some(_) | None => self.on_bad_event(link, out),
        }
    }

    /// An event has come down: it goes to those here and below that want it, unless it has been here before.
    fn on_event_from_parent(&mut self, link: LinkId, frame: EventFrame, out: &mut Vec<Output>) {
        if let Some(parent) = self.uplink.as_mut().and_then(|uplink| uplink.parent.as_mut()) {
            parent.counts.events_received += 1;
        }
        let Some(event) = self.for_oneself(&frame) else { return self.on_bad_event(link, out) };
        if self.seen.is_new(frame.id, self.now, self.config.seen) {
            let reached = self.deliver(frame.id, &event, None, out);
            self.count_arrival(reached);
        } else {
            self.counters.seen_again += 1;
        }
    }

    fn count_arrival(&mut self, reached: Reached) {
        self.counters.arrived += 1;
        self.counters.unwanted += u64::from(reached.clients + reached.leaves == 0);
    }

    /// The event of a frame that comes from a leaf or parent, if it is one and for this broker.
    fn for_oneself(&self, frame: &EventFrame) -> Option<Event> {
        let event = Event::from_bytes(frame.event.clone(), &self.config.limits).ok()?;
        (frame.destinations[..] == [self.identity.id]).then_some(event)
    }

    fn on_bad_event(&mut self, link: LinkId, out: &mut Vec<Output>) {
        let what = "an event that cannot be read, is for another broker, or claims to come from the core";
        self.close(link, CloseReason::Violation(what.into()), out);
    }

    /// Hands an event to the clients and the leaves that want it, but not back to where it came from.
    pub(crate) fn deliver(
        &mut self,
        id: EventId,
        event: &Event,
        from: Option<LinkId>,
        out: &mut Vec<Output>,
    ) -> Reached {
        self.unsettled.merging |= self.interest.observe(event);
        let before = out.len();
        let mut leaves = self.clients.deliver(id, event, out);
        from.map(|from| leaves.remove(&from));
        let reached = Reached { clients: out.len() - before, leaves: leaves.len() };
        self.counters.delivered += reached.clients as u64;
        self.counters.forwarded += reached.leaves as u64;
        for link in leaves {
            let Some(leaf) = self.leaves.get_mut(link) else { continue };
            leaf.counts.events_sent += 1;
            let frame =
                EventFrame { hop_limit: 0, destinations: smallvec![leaf.id], id, event: event.as_bytes().clone() };
            out.push(Output::Forward { link, frame });
        }
        reached
    }

    /// Sends an event to the next hops of its destinations, a copy each. What has none, or only the neighbour the event
    /// came `from`, is parked until the tables change.
    pub(crate) fn split(&mut self, frame: EventFrame, from: Option<BrokerId>, out: &mut Vec<Output>) {
        if let Some(stuck) = self.send_copies(frame, from, out) {
            self.park(stuck);
        }
    }

    /// Sends the copies that can be sent; gives what is left.
    fn send_copies(&mut self, frame: EventFrame, from: Option<BrokerId>, out: &mut Vec<Output>) -> Option<EventFrame> {
        // Mostly all go the same way: then the frame goes on as it is.
        let mut links = frame.destinations.iter().map(|&destination| self.link_towards(destination, from));
        if let Some(Some(first)) = links.next()
            && links.all(|link| link == Some(first))
        {
            self.send_copy(first, frame, out);
            return None;
        }
        let mut copies: BTreeMap<LinkId, SmallVec<[BrokerId; 2]>> = BTreeMap::new();
        let mut stuck = SmallVec::new();
        for &destination in &frame.destinations {
            match self.link_towards(destination, from) {
                Some(link) => copies.entry(link).or_default().push(destination),
                None => stuck.push(destination),
            }
        }
        for (link, destinations) in copies {
            self.send_copy(link, EventFrame { destinations, ..frame.clone() }, out);
        }
        (!stuck.is_empty()).then_some(EventFrame { destinations: stuck, ..frame })
    }

    /// The link to the next hop, unless that is the neighbour the event came `from`.
    fn link_towards(&self, destination: BrokerId, from: Option<BrokerId>) -> Option<LinkId> {
        let next_hop = self.topology.route(destination)?.next_hop;
        if Some(next_hop) == from { None } else { self.links.to(next_hop) }
    }

    fn send_copy(&mut self, link: LinkId, frame: EventFrame, out: &mut Vec<Output>) {
        if let Some(link) = self.links.get_mut(link) {
            link.counts.events_sent += 1;
        }
        self.counters.forwarded += 1;
        out.push(Output::Forward { link, frame });
    }

    fn park(&mut self, mut frame: EventFrame) {
        let size = parked_size(&frame);
        if self.parked.bytes + size > self.config.waiting_bytes {
            self.counters.lost_overflow += frame.destinations.len() as u64;
            return;
        }
        self.parked.bytes += size;
        // The bytes may be a piece of a much larger read, which would be kept as a whole.
        frame.event = Bytes::copy_from_slice(&frame.event);
        self.parked.events.push_back(ParkedEvent { frame, deadline: self.now + self.config.park });
        self.time_parked();
    }

    fn time_parked(&mut self) {
        self.timers.set(Timer::Park, self.parked.events.front().map(|parked| parked.deadline));
    }

    /// The tables have changed: tries all parked events again, in order. They may now go back to where they came from: that
    /// neighbour, if its tables have not changed yet, parks them in turn.
    pub(crate) fn unpark(&mut self, out: &mut Vec<Output>) {
        for mut parked in std::mem::take(&mut self.parked.events) {
            self.parked.bytes -= parked_size(&parked.frame);
            if let Some(stuck) = self.send_copies(parked.frame, None, out) {
                self.parked.bytes += parked_size(&stuck);
                parked.frame = stuck;
                self.parked.events.push_back(parked);
            }
        }
        self.time_parked();
    }

    /// The first parked events have waited long enough. If the tables still lead back to where an event came from, then
    /// it is that neighbour's tables that have changed since: it goes back. Without any path it is lost.
    pub(crate) fn on_parked_due(&mut self, out: &mut Vec<Output>) {
        while let Some(parked) = self.parked.events.pop_front_if(|parked| parked.deadline <= self.now) {
            self.parked.bytes -= parked_size(&parked.frame);
            let lost = self.send_copies(parked.frame, None, out);
            self.counters.lost_no_path += lost.map_or(0, |frame| frame.destinations.len() as u64);
        }
        self.time_parked();
    }
}
