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
use crate::{BrokerId, Life, Output, Payload, Routed, RoutedBody};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Messages under way at a time on one channel; with frames of 64 KiB this bounds what a link's queue holds for it.
pub(crate) const WINDOW: usize = 16;

/// Both directions of the conversation with one other broker. There are as many as brokers, and most are silent most of the
/// time: then none takes more than these numbers.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    /// The incarnation of the other broker that this is with.
    incarnation: u64,
    epoch: u64,
    sent: u64,
    their_epoch: u64,
    received: u64,
    /// None while there is none.
    pending: Option<Box<Pending>>,
}

/// The messages of a channel that have been sent or have come, and that is not the end of it.
#[derive(Debug, Default)]
struct Pending {
    /// Not acknowledged: the first [`WINDOW`] are under way, the others wait.
    unacknowledged: VecDeque<Payload>,
    under_way: usize,
    /// How long the first is waited for; nothing until it is.
    wait: Duration,
    /// Came before one that was sent before them.
    early: BTreeMap<u64, Payload>,
}

impl Channel {
    /// The sequence of the last message that the other broker has acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.sent - self.unacknowledged() as u64
    }

    /// How many messages are not acknowledged, under way or waiting.
    pub(crate) fn unacknowledged(&self) -> usize {
        self.pending.as_ref().map_or(0, |pending| pending.unacknowledged.len())
    }

    fn under_way(&self) -> usize {
        self.pending.as_ref().map_or(0, |pending| pending.under_way)
    }

    /// Puts a message behind the others and says its sequence.
    fn push(&mut self, payload: Payload) -> u64 {
        self.pending.get_or_insert_default().unacknowledged.push_back(payload);
        self.sent += 1;
        self.sent
    }

    /// The messages that the window lets go now, as numbered bodies.
    fn next_messages(&mut self) -> Vec<RoutedBody> {
        let Some(pending) = &mut self.pending else { return Vec::new() };
        let from = pending.under_way;
        pending.under_way = pending.unacknowledged.len().min(WINDOW);
        self.bodies(from)
    }

    /// What is under way, from the message at that place on.
    fn bodies(&self, from: usize) -> Vec<RoutedBody> {
        let Some(pending) = &self.pending else { return Vec::new() };
        let (epoch, first) = (self.epoch, self.acknowledged() + 1);
        let body = |index: usize| RoutedBody::Data {
            epoch,
            sequence: first + index as u64,
            payload: pending.unacknowledged[index].clone(),
        };
        (from..pending.under_way).map(body).collect()
    }

    /// Takes in an acknowledgement; false if it says nothing new.
    fn acknowledge(&mut self, received: u64) -> bool {
        let fresh = received.min(self.sent).saturating_sub(self.acknowledged()) as usize;
        if let Some(pending) = &mut self.pending {
            pending.unacknowledged.drain(..fresh);
            pending.under_way = pending.under_way.saturating_sub(fresh);
        }
        self.rest();
        fresh > 0
    }

    /// Takes in a numbered message; gives those that are in order now.
    fn receive(&mut self, sequence: u64, payload: Payload) -> Vec<Payload> {
        if sequence <= self.received || sequence > self.received + WINDOW as u64 {
            return Vec::new();
        }
        let mut ready = Vec::new();
        if sequence == self.received + 1 {
            self.received += 1;
            ready.push(payload);
        } else {
            self.pending.get_or_insert_default().early.insert(sequence, payload);
        }
        while let Some(pending) = &mut self.pending
            && let Some(payload) = pending.early.remove(&(self.received + 1))
        {
            self.received += 1;
            ready.push(payload);
        }
        self.rest();
        ready
    }

    /// The next message is waited for as long as is usual.
    fn wait_as_usual(&mut self) {
        self.pending.iter_mut().for_each(|pending| pending.wait = Duration::ZERO);
    }

    /// Their half begins anew: what came early of the old one is void.
    fn begin_theirs(&mut self, epoch: u64) {
        (self.their_epoch, self.received) = (epoch, 0);
        self.pending.iter_mut().for_each(|pending| pending.early.clear());
        self.rest();
    }

    /// The own half begins anew: what has not been acknowledged is dropped.
    fn begin_own(&mut self, epoch: u64) {
        (self.epoch, self.sent) = (epoch, 0);
        if let Some(pending) = &mut self.pending {
            **pending = Pending { early: std::mem::take(&mut pending.early), ..Pending::default() };
        }
        self.rest();
    }

    /// Keeps no room for messages if there are none.
    fn rest(&mut self) {
        self.pending.take_if(|pending| pending.unacknowledged.is_empty() && pending.early.is_empty());
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
        self.channel(with).begin_own(epoch);
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
        let pending = self.channel(to).pending.as_mut().filter(|pending| pending.under_way > 0);
        let wait = pending.map(|pending| {
            pending.wait = pending.wait.max(first);
            pending.wait
        });
        match wait {
            None => self.timers.set(Timer::Resend(to), None),
            Some(wait) => self.timers.start(Timer::Resend(to), now + wait),
        }
    }

    /// Sends again all that is under way to a broker, if there is a path; [`Broker::on_path_changed`] sees to it otherwise.
    pub(crate) fn resend(&mut self, to: BrokerId, out: &mut Vec<Output>) {
        self.timers.set(Timer::Resend(to), None);
        let Some(channel) = self.channels.get_mut(&to) else { return };
        if channel.under_way() == 0 || self.topology.route(to).is_none() {
            return;
        }
        if let Some(pending) = &mut channel.pending {
            pending.wait = (pending.wait * 2).clamp(self.config.resend, self.config.resend_max);
        }
        for body in channel.bodies(0) {
            self.counters.resent += 1;
            self.send_routed(to, body, out);
        }
        self.time_resend(to);
    }

    pub(crate) fn send_routed(&mut self, destination: BrokerId, body: RoutedBody, out: &mut Vec<Output>) {
        let source = Life { broker: self.identity.id, incarnation: self.identity.incarnation };
        let incarnation = self.topology.incarnation(destination).unwrap_or(0);
        let destination = Life { broker: destination, incarnation };
        self.pass_on(Routed { source, destination, passed: 0, body }, out);
    }

    /// A letter to this broker, from another one.
    pub(crate) fn on_letter(&mut self, letter: Routed, out: &mut Vec<Output>) {
        let from = letter.source.broker;
        // Words of another life, or of one not heard of yet: dropped, and sent again if they still hold.
        let present = letter.destination.incarnation == self.identity.incarnation
            && self.topology.incarnation(from) == Some(letter.source.incarnation);
        if !present {
            return;
        }
        match letter.body {
            RoutedBody::Data { epoch, sequence, payload } => self.on_data(from, epoch, sequence, payload, out),
            RoutedBody::Ack { epoch, received } => self.on_ack(from, epoch, received, out),
            RoutedBody::Restart { epoch } => {
                if self.channel(from).epoch == epoch {
                    self.restart_channel(from);
                    // Steps under way on the old channel will never be acknowledged.
                    self.announcements.forget(from);
                    self.announce_whole(from, out);
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
            channel.begin_theirs(epoch);
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
        channel.wait_as_usual();
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
            channel.wait_as_usual();
            self.resend(to, out);
        }
        self.expect_answer(to);
    }
}
