//! Events on their way: split by next hop, forwarded untouched, delivered at their destinations.
//!
//! A copy of an event names its destinations; of one event, each destination is in exactly one copy anywhere. So nothing
//! is ever delivered twice, however the brokers' tables differ while routes change; what differs is at most a detour.

use crate::broker::Broker;
use crate::timers::Timer;
use crate::{BrokerId, EventFrame, EventId, LinkId, Notice, Output, Time};
use bytes::Bytes;
use enroute_filter::Event;
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

impl Parked {
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }
}

impl Broker {
    pub(crate) fn on_event(&mut self, link: LinkId, mut frame: EventFrame, out: &mut Vec<Output>) {
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
                if self.deliver(id, &event, out) == 0 {
                    self.counters.unwanted += 1;
                }
            }
            Err(error) => {
                let what = format!("event {id}: {error}");
                out.push(Output::Notice(Notice::Unreadable { broker: id.origin, what }));
            }
        }
    }

    /// Hands an event to the clients that want it and says how many.
    pub(crate) fn deliver(&mut self, id: EventId, event: &Event, out: &mut Vec<Output>) -> usize {
        let deliveries = self.clients.deliveries(id, event);
        let count = deliveries.len();
        self.counters.delivered += count as u64;
        out.extend(deliveries.into_iter().map(|(client, delivery)| Output::Deliver { client, delivery }));
        count
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
        let mut copies: BTreeMap<LinkId, Vec<BrokerId>> = BTreeMap::new();
        let mut stuck = Vec::new();
        for &destination in &frame.destinations {
            let next_hop = self.topology.route(destination).map(|route| route.next_hop);
            let link = next_hop.filter(|&next_hop| Some(next_hop) != from).and_then(|next_hop| self.links.to(next_hop));
            match link {
                Some(link) => copies.entry(link).or_default().push(destination),
                None => stuck.push(destination),
            }
        }
        for (link, destinations) in copies {
            if let Some(link) = self.links.get_mut(link) {
                link.counts.events_sent += 1;
            }
            self.counters.forwarded += 1;
            out.push(Output::Forward { link, frame: EventFrame { destinations, ..frame.clone() } });
        }
        (!stuck.is_empty()).then_some(EventFrame { destinations: stuck, ..frame })
    }

    fn park(&mut self, frame: EventFrame) {
        let size = parked_size(&frame);
        if self.parked.bytes + size > self.config.waiting_bytes {
            self.counters.lost_overflow += frame.destinations.len() as u64;
            return;
        }
        self.parked.bytes += size;
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
