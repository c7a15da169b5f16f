//! What brokers ask for, done as a daemon would do it.

use crate::link::{Channel, Connection, End, Passage, Standing, draw};
use crate::tally::kind;
use crate::world::{Happening, World};
use enroute_broker::{CloseReason, EventFrame, LeafMessage, LinkId, Message, Notice, Output, Time};

/// Whether a message only keeps up what is.
fn is_lease(message: &Message) -> bool {
    matches!(message, Message::Leaf(LeafMessage::Renew { .. } | LeafMessage::Lease { .. }))
}

fn is_sign_of_life(output: &Output) -> bool {
    matches!(output, Output::Send { message, .. } if is_lease(message))
}

impl World {
    /// Does what a broker asks for.
    pub(crate) fn perform(&mut self, host: usize, output: Output) {
        if !is_sign_of_life(&output) {
            self.active = self.now;
        }
        match output {
            Output::Send { link, message } => {
                if let Some(message) = self.take_word(host, message) {
                    self.send(host, link, message);
                }
            }
            Output::Forward { link, frame } => self.forward(host, link, frame),
            Output::Deliver { client, delivery } => match self.sessions.get(&client) {
                Some(&number) => {
                    self.oracle.delivered((number, client), &delivery, self.now);
                    if let Some(workload) = &mut self.workload {
                        workload.delivered(delivery.id, host);
                    }
                    self.clients[number].read(delivery);
                }
                None => self.complain(format!("a delivery to client {client:?}, who is not there")),
            },
            Output::Reply { client, request, reply } => self.on_reply(client, request, reply),
            Output::CloseLink { link, reason } => self.close(host, link, reason),
            Output::StoreIncarnation(incarnation) => {
                self.hosts[host].incarnation = self.hosts[host].incarnation.max(incarnation);
            }
            Output::IdentityInUse => {
                match self.is_double(host) {
                    true => self.in_use += 1,
                    false => {
                        self.complain(format!("broker {} says that its identity is in use", self.hosts[host].name))
                    }
                }
                self.crash(host);
            }
            Output::Notice(Notice::Impersonated { .. }) if self.is_double(host) => {}
            Output::Notice(notice) => {
                self.complain(format!("broker {} gives notice: {notice}", self.hosts[host].name));
            }
        }
    }

    /// Whether another broker has the same identity.
    fn is_double(&self, host: usize) -> bool {
        self.settings.clones.iter().any(|(&clone, &original)| clone == host || original == host)
    }

    /// The connection and side that a broker means, if it may send there.
    fn usable(&mut self, host: usize, link: LinkId) -> Option<(u64, usize)> {
        let (number, side) = Connection::of_link(link);
        let usable = self.connections.get(&number).is_some_and(|connection| {
            self.edges[connection.edge].hosts[side] == host && connection.ends[side].standing == Standing::Up
        });
        if !usable {
            self.complain(format!("broker {} uses link {}, which it does not have", self.hosts[host].name, link.0));
        }
        usable.then_some((number, side))
    }

    fn send(&mut self, host: usize, link: LinkId, message: Message) {
        let Some((number, side)) = self.usable(host, link) else { return };
        let bytes = enroute_wire::message_size(&message) as u64;
        self.tally.at(self.now, [bytes, 0]);
        self.tally.control.entry(kind(&message)).or_default().add(bytes);
        let edge = self.connections[&number].edge;
        self.tally.links[edge].control.add(bytes);
        let idle = is_lease(&message);
        self.pass(number, side, (Channel::Control, idle), bytes, |end, passage| end.control.send(message, passage));
    }

    fn forward(&mut self, host: usize, link: LinkId, frame: EventFrame) {
        let Some((number, side)) = self.usable(host, link) else { return };
        let bytes = enroute_wire::event_frame_size(&frame) as u64;
        self.tally.at(self.now, [0, bytes]);
        self.tally.events.add(bytes);
        let edge = self.connections[&number].edge;
        let tally = &mut self.tally.links[edge];
        tally.events[side] += 1;
        tally.event_bytes += bytes;
        let to = self.edges[edge].hosts[1 - side];
        if self.edges[edge].uplink {
            self.oracle.hop_sent([host, to], side == 0, &frame, self.now);
        } else {
            self.oracle.forwarded((host, self.hosts[host].id), to, &frame, self.now);
        }
        self.pass(number, side, (Channel::Events, false), bytes, |end, passage| end.events.send(frame, passage));
    }

    /// Puts something into a connection's pipe and schedules its arrival.
    fn pass(
        &mut self,
        number: u64,
        side: usize,
        (channel, idle): (Channel, bool),
        bytes: u64,
        send: impl FnOnce(&mut End, Passage) -> Time,
    ) {
        let jitter = draw(&mut self.random, [0, self.settings.link.jitter_us]);
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let edge = &self.edges[connection.edge];
        let passage = Passage {
            now: self.now.max(edge.rules.stalled_until),
            bytes,
            bandwidth: edge.rules.bandwidth.or(self.settings.link.bandwidth),
            delay: edge.delay + jitter + edge.rules.delay_of(channel),
            not_before: connection.ends[1 - side].up_at,
        };
        let arrival = send(&mut connection.ends[side], passage);
        if connection.broken.is_none() {
            self.schedule(arrival, Happening::Arrival { connection: number, side: 1 - side, channel, idle });
        }
    }

    fn close(&mut self, host: usize, link: LinkId, reason: CloseReason) {
        let Some((number, side)) = self.usable(host, link) else { return };
        *self.tally.closes.entry(reason.to_string()).or_default() += 1;
        if let CloseReason::Violation(what) = &reason {
            self.complain(format!("broker {} sees a violation: {what}", self.hosts[host].name));
        }
        let again = match reason {
            CloseReason::Duplicate | CloseReason::Oneself => false,
            CloseReason::Violation(_)
            | CloseReason::IdClash { .. }
            | CloseReason::OldIncarnation
            | CloseReason::NoPath
            | CloseReason::Cycle
            | CloseReason::Moved
            | CloseReason::Full { .. } => true,
        };
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.ends[side].doubled = reason == CloseReason::Duplicate;
        }
        self.close_end(number, side, again);
    }
}
