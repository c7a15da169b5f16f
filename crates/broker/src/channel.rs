//! Routed, reliable control: from one broker to another over whatever lies between, in order, each message once.
//!
//! A channel is numbered (its epoch) by the broker that sends on it, and begins anew, with a larger number, when either
//! broker begins a new life or has forgotten the other. What was under way is dropped then: whoever sends on the channel
//! says the whole of it again. The receiver acknowledges all that it has in order, and that the leaves below it that rely on it
//! have; the sender sends again what is not
//! acknowledged in time, and at once when the way to the receiver changes.

use crate::broker::Broker;
use crate::quench::Owed;
use crate::timers::Timer;
use crate::{BrokerId, CloseReason, LinkId, Message, Output, Payload, Routed, RoutedBody};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Messages under way at a time on one channel; with frames of 64 KiB this bounds what a link's queue holds for it.
const WINDOW: usize = 16;

/// Brokers that control may pass; far more than any path that tables would choose.
const HOP_LIMIT: u16 = 1_024;

/// Both directions of the conversation with one other broker.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    /// The incarnation of the other broker that this is with.
    incarnation: u64,
    epoch: u64,
    sent: u64,
    /// Not acknowledged: the first [`WINDOW`] are under way, the others wait.
    unacknowledged: VecDeque<Payload>,
    under_way: usize,
    wait: Duration,
    their_epoch: u64,
    received: u64,
    early: BTreeMap<u64, Payload>,
}

impl Channel {
    /// The sequence of the last message that the other broker has acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.sent - self.unacknowledged.len() as u64
    }

    /// How many messages are not acknowledged, under way or waiting.
    pub(crate) fn unacknowledged(&self) -> usize {
        self.unacknowledged.len()
    }

    /// Puts a message behind the others and says its sequence.
    fn push(&mut self, payload: Payload) -> u64 {
        self.unacknowledged.push_back(payload);
        self.sent += 1;
        self.sent
    }

    /// The messages that the window lets go now, as numbered bodies.
    fn next_messages(&mut self) -> Vec<RoutedBody> {
        let from = self.under_way;
        self.under_way = self.unacknowledged.len().min(WINDOW);
        (from..self.under_way).map(|index| self.body(index)).collect()
    }

    fn body(&self, index: usize) -> RoutedBody {
        let sequence = self.acknowledged() + 1 + index as u64;
        RoutedBody::Data { epoch: self.epoch, sequence, payload: self.unacknowledged[index].clone() }
    }

    /// Takes in an acknowledgement; false if it says nothing new.
    fn acknowledge(&mut self, received: u64) -> bool {
        let fresh = received.min(self.sent).saturating_sub(self.acknowledged()) as usize;
        self.unacknowledged.drain(..fresh);
        self.under_way = self.under_way.saturating_sub(fresh);
        if self.unacknowledged.is_empty() {
            // There are as many channels as brokers, and most are silent most of the time: none keeps room.
            self.unacknowledged = VecDeque::new();
        }
        fresh > 0
    }

    /// Takes in a numbered message; gives those that are in order now.
    fn receive(&mut self, sequence: u64, payload: Payload) -> Vec<Payload> {
        if sequence > self.received && sequence <= self.received + WINDOW as u64 {
            self.early.insert(sequence, payload);
        }
        let mut ready = Vec::new();
        while let Some(payload) = self.early.remove(&(self.received + 1)) {
            self.received += 1;
            ready.push(payload);
        }
        ready
    }
}

impl Broker {
    /// Sends a message on the channel to `to`, which must be known, and says its sequence.
    pub(crate) fn tell(&mut self, to: BrokerId, payload: Payload, out: &mut Vec<Output>) -> u64 {
        let sequence = self.channel(to).push(payload);
        self.send_window(to, out);
        sequence
    }

    /// The channel with a broker, begun if there is none with its present life.
    fn channel(&mut self, with: BrokerId) -> &mut Channel {
        let incarnation = self.topology.incarnation(with).unwrap_or(0);
        let channel = self.channels.entry(with).or_default();
        if channel.epoch == 0 || channel.incarnation != incarnation {
            self.last_epoch += 1;
            *channel = Channel { incarnation, epoch: self.last_epoch, ..Channel::default() };
        }
        channel
    }

    /// Begins the sending half of a channel anew; what it carried has to be told again.
    pub(crate) fn restart_channel(&mut self, with: BrokerId) {
        self.last_epoch += 1;
        let epoch = self.last_epoch;
        let channel = self.channel(with);
        *channel = Channel {
            incarnation: channel.incarnation,
            epoch,
            their_epoch: channel.their_epoch,
            received: channel.received,
            early: std::mem::take(&mut channel.early),
            ..Channel::default()
        };
        // A request for the whole of its interest may be among what is dropped.
        self.expect_answer(with);
        self.timers.set(Timer::Resend(with), None);
    }

    fn send_window(&mut self, to: BrokerId, out: &mut Vec<Output>) {
        for body in self.channel(to).next_messages() {
            self.send_routed(to, body, out);
        }
        self.time_resend(to);
    }

    fn time_resend(&mut self, to: BrokerId) {
        let (first, now) = (self.config.resend, self.now);
        let channel = self.channel(to);
        if channel.under_way == 0 {
            channel.wait = first;
            self.timers.set(Timer::Resend(to), None);
        } else {
            let at = now + channel.wait.max(first);
            self.timers.start(Timer::Resend(to), at);
        }
    }

    /// Sends again all that is under way to a broker, if there is a path; [`Broker::on_path_changed`] sees to it otherwise.
    pub(crate) fn resend(&mut self, to: BrokerId, out: &mut Vec<Output>) {
        self.timers.set(Timer::Resend(to), None);
        let Some(channel) = self.channels.get_mut(&to) else { return };
        if channel.under_way == 0 || self.topology.route(to).is_none() {
            return;
        }
        channel.wait = (channel.wait * 2).clamp(self.config.resend, self.config.resend_max);
        let bodies: Vec<RoutedBody> = (0..channel.under_way).map(|index| channel.body(index)).collect();
        for body in bodies {
            self.counters.resent += 1;
            self.send_routed(to, body, out);
        }
        self.time_resend(to);
    }

    pub(crate) fn send_routed(&mut self, destination: BrokerId, body: RoutedBody, out: &mut Vec<Output>) {
        let routed = Routed {
            source: self.identity.id,
            source_incarnation: self.identity.incarnation,
            destination,
            destination_incarnation: self.topology.incarnation(destination).unwrap_or(0),
            hop_limit: HOP_LIMIT,
            body,
        };
        self.pass_on(routed, out);
    }

    /// Sends routed control to its next hop. Without one it is dropped: its source sends it again.
    fn pass_on(&mut self, routed: Routed, out: &mut Vec<Output>) {
        let next_hop = self.topology.route(routed.destination).and_then(|route| self.links.to(route.next_hop));
        if let Some(link) = next_hop {
            self.send(link, Message::Routed(routed), out);
        }
    }

    pub(crate) fn on_routed(&mut self, link: LinkId, mut routed: Routed, out: &mut Vec<Output>) {
        if routed.destination != self.identity.id {
            if let Some(hop_limit) = routed.hop_limit.checked_sub(1) {
                routed.hop_limit = hop_limit;
                self.pass_on(routed, out);
            }
            return;
        }
        if routed.source == self.identity.id {
            self.close(link, CloseReason::Violation("routed control from me to me".into()), out);
            return;
        }
        // Words of another life, or of one not heard of yet: dropped, and sent again if they still hold.
        let present = routed.destination_incarnation == self.identity.incarnation
            && self.topology.incarnation(routed.source) == Some(routed.source_incarnation);
        if !present {
            return;
        }
        match routed.body {
            RoutedBody::Data { epoch, sequence, payload } => self.on_data(routed.source, epoch, sequence, payload, out),
            RoutedBody::Ack { epoch, received } => self.on_ack(routed.source, epoch, received, out),
            RoutedBody::Restart { epoch } => {
                if self.channel(routed.source).epoch == epoch {
                    self.restart_channel(routed.source);
                    // Steps under way on the old channel will never be acknowledged.
                    self.announcements.forget(routed.source);
                    self.announce_whole(routed.source, out);
                }
            }
        }
    }

    fn on_data(&mut self, from: BrokerId, epoch: u64, sequence: u64, payload: Payload, out: &mut Vec<Output>) {
        let channel = self.channel(from);
        if epoch < channel.their_epoch {
            return;
        }
        if epoch > channel.their_epoch {
            if sequence != 1 {
                self.send_routed(from, RoutedBody::Restart { epoch }, out);
                return;
            }
            channel.their_epoch = epoch;
            channel.received = 0;
            channel.early.clear();
            self.remote.unstage(from);
        }
        let channel = self.channel(from);
        let ready = channel.receive(sequence, payload);
        let received = channel.received;
        for payload in ready {
            match payload {
                Payload::Interest(interest) => self.on_interest(from, interest, out),
                Payload::Resync { version: _ } => {
                    self.counters.resyncs += 1;
                    self.announce_whole(from, out);
                }
                Payload::Detach(detach) => self.on_detach(detach, false, out),
            }
        }
        self.owe(Owed::Channel { to: from, epoch, received }, out);
    }

    fn on_ack(&mut self, from: BrokerId, epoch: u64, received: u64, out: &mut Vec<Output>) {
        let channel = self.channel(from);
        if channel.epoch != epoch || !channel.acknowledge(received) {
            return;
        }
        channel.wait = Duration::ZERO;
        self.timers.set(Timer::Resend(from), None);
        self.send_window(from, out);
        self.on_acknowledged(from, out);
    }

    /// Forgets the channel with a broker.
    pub(crate) fn drop_channel(&mut self, with: BrokerId) {
        self.channels.remove(&with);
        self.timers.set(Timer::Resend(with), None);
    }

    /// The way to a broker is new or another one: what went down with the old one goes out again at once.
    pub(crate) fn on_path_changed(&mut self, to: BrokerId, out: &mut Vec<Output>) {
        if let Some(channel) = self.channels.get_mut(&to) {
            channel.wait = Duration::ZERO;
            self.resend(to, out);
        }
        self.expect_answer(to);
    }
}
