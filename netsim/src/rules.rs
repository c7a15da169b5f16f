//! Rules that hold on a link for a while: it is slow, lets nothing through, or flaps.

use crate::link::Channel;
use crate::world::{Happening, World};
use enroute_broker::Time;
use std::time::Duration;

/// What a link does besides what all links do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Microseconds more for each control message, and for each event.
    pub(crate) delay: [u64; 2],
    /// Bytes a second for each channel, if fewer than on all links.
    pub(crate) bandwidth: Option<u64>,
    /// Nothing more leaves before this.
    pub(crate) stalled_until: Time,
    /// Counts what makes it flap or stops that: of an earlier one nothing happens any more.
    flapping: u64,
}

impl Rules {
    /// The microseconds more for a channel.
    pub(crate) fn delay_of(&self, channel: Channel) -> u64 {
        match channel {
            Channel::Control => self.delay[0],
            Channel::Events => self.delay[1],
        }
    }
}

/// How a link goes on flapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flap {
    number: u64,
    left: u32,
    down: Duration,
    up: Duration,
}

impl World {
    /// Slows a link down: so many microseconds more for each control message and each event, so many bytes a second.
    pub fn slow(&mut self, link: usize, delay: [u64; 2], bandwidth: Option<u64>) {
        let rules = &mut self.edges[link].rules;
        (rules.delay, rules.bandwidth) = (delay, bandwidth);
        self.slowest = self.slowest.max(delay[0]).max(delay[1]);
        self.trace_link(link, &("slow", delay, bandwidth));
    }

    /// Lets nothing more leave over a link for a while. It stays up.
    pub fn stall(&mut self, link: usize, span: Duration) {
        let until = self.now + span;
        self.edges[link].rules.stalled_until = self.edges[link].rules.stalled_until.max(until);
        self.stalled_until = self.stalled_until.max(until);
        self.trace_link(link, &("stalled", span));
        self.schedule(until + self.allowance(), Happening::Counted);
    }

    /// Cuts and heals a link so many times, from now on, and goes on with whatever else there is to do.
    pub fn flap(&mut self, link: usize, times: u32, down: Duration, up: Duration) {
        if self.edges[link].cut || times == 0 {
            return;
        }
        self.lift_rules(link);
        let number = self.edges[link].rules.flapping;
        self.on_flap(link, Flap { number, left: times, down, up });
    }

    pub(crate) fn on_flap(&mut self, edge: usize, flap: Flap) {
        if self.edges[edge].rules.flapping != flap.number {
            return;
        }
        if self.edges[edge].cut {
            self.make_whole(edge);
            if flap.left > 0 {
                self.schedule(self.now + flap.up, Happening::Flap { edge, flap });
            }
        } else {
            self.cut(edge);
            self.schedule(self.now + flap.down, Happening::Flap { edge, flap: Flap { left: flap.left - 1, ..flap } });
        }
    }

    /// Nothing slows a link any more, or makes it flap. What is stalled goes on when it would.
    pub(crate) fn lift_rules(&mut self, link: usize) {
        let Rules { stalled_until, flapping, .. } = self.edges[link].rules;
        self.edges[link].rules = Rules { stalled_until, flapping: flapping + 1, ..Rules::default() };
    }
}
