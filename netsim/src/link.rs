//! Links and the connections over them.
//!
//! An [`Edge`] is a link that ought to be; a [`Connection`] is one life of it, as two brokers' drivers would hold it. Over a
//! connection go four ordered [`Pipe`]s: control and events, in both directions. Nothing is ever lost but by the break of a
//! connection: then all that has not arrived is gone, but for events that the sender's driver had not begun to send.

use crate::Random;
use crate::rules::Rules;
use enroute_broker::{EventFrame, LinkId, Message, Time};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Who dials a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dial {
    /// The broker that comes first.
    #[default]
    One,
    /// Both, at about the same time, which gives two connections.
    Both,
}

/// Properties of all links; pairs are ranges, both ends included, from which the seed draws.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkSettings {
    /// Delay of a link in microseconds, drawn once for each link.
    pub delay_us: [u64; 2],
    /// Up to so many microseconds more for each message; the order stays.
    pub jitter_us: u64,
    /// How long after a break an end learns of it, in microseconds, drawn for each end.
    pub detection_us: [u64; 2],
    /// How long after a link was lost or could not be had it is dialled again, in microseconds.
    pub redial_us: [u64; 2],
    /// What an end says the link costs, drawn for each end.
    pub cost: [u32; 2],
    /// Whether round trips are measured and decide in place of `cost`: there and back at the link's delay, without the jitter, since
    /// the shortest of many counts.
    pub measured: bool,
    /// Bytes a second for events, and again for control; nothing: no bound.
    pub bandwidth: Option<u64>,
    /// Who dials.
    pub dial: Dial,
    /// Whether each broker also dials itself when it starts.
    pub self_dials: bool,
}

impl Default for LinkSettings {
    fn default() -> LinkSettings {
        LinkSettings {
            delay_us: [1_000, 10_000],
            jitter_us: 0,
            detection_us: [1_000, 500_000],
            redial_us: [10_000, 1_000_000],
            cost: [1, 1],
            measured: false,
            bandwidth: None,
            dial: Dial::One,
            self_dials: false,
        }
    }
}

/// Draws from a range, both ends included, in whichever order they are given.
pub(crate) fn draw(random: &mut Random, [from, to]: [u64; 2]) -> u64 {
    random.random_range(from.min(to)..=from.max(to))
}

/// A link that ought to be.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    /// The brokers at its ends; one broker twice for a dial to itself.
    pub(crate) hosts: [usize; 2],
    /// One way, in microseconds.
    pub(crate) delay: u64,
    /// What each end says it costs.
    pub(crate) costs: [u32; 2],
    /// Whether it joins a leaf broker, its first end, and one of the uplinks that may choose from.
    pub(crate) uplink: bool,
    /// Whether each end dials.
    pub(crate) dials: [bool; 2],
    /// Whether it is cut at present.
    pub(crate) cut: bool,
    /// Whether it can be counted on, as far as the oracle goes.
    pub(crate) counted: bool,
    /// What it does at present besides what all links do.
    pub(crate) rules: Rules,
}

impl Edge {
    /// A link of the core, whole and without rules; its delay and its costs are drawn.
    pub(crate) fn new(link: &LinkSettings, random: &mut Random, hosts: [usize; 2], dials: [bool; 2]) -> Edge {
        let edge = Edge {
            hosts,
            delay: draw(random, link.delay_us),
            costs: [0, 1].map(|_| draw(random, link.cost.map(u64::from)).clamp(1, u32::MAX.into()) as u32),
            uplink: false,
            dials,
            cut: false,
            counted: false,
            rules: Rules::default(),
        };
        crate::probe::measured(link.measured, edge)
    }

    /// What it costs: the larger of what its ends say.
    pub(crate) fn cost(&self) -> u64 {
        self.costs[0].max(self.costs[1]).into()
    }

    /// A dial of a broker to itself.
    pub(crate) fn is_loop(&self) -> bool {
        self.hosts[0] == self.hosts[1]
    }
}

/// The two streams of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    Control,
    Events,
}

/// How an end of a connection stands with its broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The broker has not been told of it yet.
    Opening,
    /// The broker uses it.
    Up,
    /// The broker has closed it; what the other end had sent still comes in.
    Closed,
    /// The broker knows that it is no more, or never learnt of it, or is no more itself.
    Gone,
}

/// One life of a link.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) edge: usize,
    /// The side that dialled.
    pub(crate) dialler: usize,
    /// The dialler's count of its dials.
    pub(crate) dial: u64,
    /// The incarnation that each end told in its hello.
    pub(crate) told: [u64; 2],
    /// When it broke.
    pub(crate) broken: Option<Time>,
    pub(crate) ends: [End; 2],
}

/// One end of a connection, with what it has sent.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) standing: Standing,
    /// When it comes up; nothing arrives before.
    pub(crate) up_at: Time,
    /// Whether its broker has closed it since there is another connection to that neighbour.
    pub(crate) doubled: bool,
    pub(crate) control: Pipe<Message>,
    pub(crate) events: Pipe<EventFrame>,
}

impl End {
    pub(crate) fn new(up_at: Time) -> End {
        End { standing: Standing::Opening, up_at, doubled: false, control: Pipe::default(), events: Pipe::default() }
    }

    /// When the last of what was sent arrives.
    pub(crate) fn last_arrival(&self) -> Time {
        self.control.last_arrival.max(self.events.last_arrival)
    }
}

impl Connection {
    /// The number that a side's driver gives the connection.
    pub(crate) fn link(number: u64, side: usize) -> LinkId {
        LinkId(number * 2 + side as u64)
    }

    /// The connection and side of such a number.
    pub(crate) fn of_link(link: LinkId) -> (u64, usize) {
        (link.0 / 2, (link.0 % 2) as usize)
    }

    /// Whether both brokers use it and it is whole.
    pub(crate) fn carries(&self) -> bool {
        self.broken.is_none() && self.ends.iter().all(|end| end.standing == Standing::Up)
    }

    /// Whether nobody will hear of it again.
    pub(crate) fn is_over(&self) -> bool {
        let silent = |end: &End| end.control.is_empty() && end.events.is_empty();
        let left = |end: &End| matches!(end.standing, Standing::Closed | Standing::Gone);
        self.ends.iter().all(|end| left(end) && silent(end))
    }
}

/// One direction of one channel: first in, first out.
#[derive(Debug)]
pub(crate) struct Pipe<T> {
    in_flight: VecDeque<(Time, T)>,
    /// When the last byte given so far has left.
    free_at: Time,
    last_arrival: Time,
}

impl<T> Default for Pipe<T> {
    fn default() -> Pipe<T> {
        Pipe { in_flight: VecDeque::new(), free_at: Time(0), last_arrival: Time(0) }
    }
}

/// What decides when a message arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    /// When it is given to the link.
    pub(crate) now: Time,
    /// Its size.
    pub(crate) bytes: u64,
    /// Bytes a second.
    pub(crate) bandwidth: Option<u64>,
    /// From its last byte's leaving to its arrival, in microseconds.
    pub(crate) delay: u64,
    /// When the other end comes up.
    pub(crate) not_before: Time,
}

impl<T> Pipe<T> {
    /// Takes something in and says when it arrives, never before what was sent earlier.
    pub(crate) fn send(&mut self, what: T, passage: Passage) -> Time {
        let start = passage.now.max(self.free_at);
        let duration = match passage.bandwidth {
            Some(bandwidth) => passage.bytes.saturating_mul(1_000_000) / bandwidth.max(1),
            None => 0,
        };
        self.free_at = Time(start.0.saturating_add(duration));
        let arrival = Time(self.free_at.0.saturating_add(passage.delay));
        self.last_arrival = arrival.max(passage.not_before).max(self.last_arrival);
        self.in_flight.push_back((start, what));
        self.last_arrival
    }

    /// What arrives next.
    pub(crate) fn arrive(&mut self) -> Option<T> {
        self.in_flight.pop_front().map(|(_, what)| what)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Forgets what is in flight.
    pub(crate) fn clear(&mut self) {
        self.in_flight.clear();
    }

    /// Takes all that is in flight out, in two parts: what had begun to leave at a moment, and what had not.
    pub(crate) fn break_at(&mut self, moment: Time) -> (Vec<T>, Vec<T>) {
        let whole = std::mem::take(&mut self.in_flight);
        let (begun, untouched): (Vec<_>, Vec<_>) = whole.into_iter().partition(|&(start, _)| start < moment);
        let bare = |parcels: Vec<(Time, T)>| parcels.into_iter().map(|(_, what)| what).collect();
        (bare(begun), bare(untouched))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(now: u64, delay: u64) -> Passage {
        Passage { now: Time(now), bytes: 100, bandwidth: None, delay, not_before: Time(0) }
    }

    #[test]
    fn a_pipe_keeps_the_order_whatever_the_delays() {
        let mut pipe = Pipe::default();
        assert_eq!(pipe.send('a', passage(0, 50)), Time(50));
        assert_eq!(pipe.send('b', passage(10, 5)), Time(50));
        assert_eq!(pipe.send('c', Passage { not_before: Time(90), ..passage(20, 5) }), Time(90));
        assert_eq!(
            (pipe.arrive(), pipe.arrive(), pipe.arrive(), pipe.arrive()),
            (Some('a'), Some('b'), Some('c'), None)
        );
    }

    #[test]
    fn bandwidth_makes_later_ones_wait_and_a_break_finds_them_untouched() {
        let mut pipe = Pipe::default();
        let slow = Passage { bandwidth: Some(1_000_000), ..passage(0, 10) };
        assert_eq!(pipe.send('a', slow), Time(110));
        assert_eq!(pipe.send('b', slow), Time(210));
        assert_eq!(pipe.send('c', slow), Time(310));
        assert_eq!(pipe.break_at(Time(100)), (vec!['a'], vec!['b', 'c']));
        assert!(pipe.is_empty());
    }
}
