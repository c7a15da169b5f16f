//! Random things in a random order, all from the seed.

use crate::traffic::Traffic;
use crate::world::World;
use crate::{Random, seeded};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How many random things to do, and how often which. The weights are relative; 0 means never.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Chaos {
    /// How many things to do.
    pub actions: u64,
    /// At most so long between two of them, in microseconds of virtual time.
    pub gap_us: u64,
    /// Publish an event.
    pub publish: u32,
    /// Place a subscription, or replace one.
    pub subscribe: u32,
    /// Withdraw a subscription.
    pub unsubscribe: u32,
    /// Make an advertisement, or replace one.
    pub advertise: u32,
    /// Withdraw an advertisement.
    pub unadvertise: u32,
    /// Dial over a link that is there already. No fault.
    pub dial_again: u32,
    /// Cut a link.
    pub cut: u32,
    /// Heal a link.
    pub heal: u32,
    /// Crash a broker.
    pub crash: u32,
    /// Start a crashed broker.
    pub restart: u32,
}

impl Default for Chaos {
    fn default() -> Chaos {
        Chaos {
            actions: 300,
            gap_us: 50_000,
            publish: 60,
            subscribe: 12,
            unsubscribe: 8,
            advertise: 2,
            unadvertise: 2,
            dial_again: 3,
            cut: 5,
            heal: 6,
            crash: 2,
            restart: 3,
        }
    }
}

/// Names that a client uses in chaos: few, so that it replaces and withdraws what stands.
const NAMES: [&str; 4] = ["w", "x", "y", "z"];

impl Chaos {
    /// A time without faults: links and brokers stay as they are.
    pub fn without_faults() -> Chaos {
        Chaos { cut: 0, heal: 0, crash: 0, restart: 0, ..Chaos::default() }
    }

    /// Does it. `round` makes two such times in one run differ.
    pub fn run(&self, world: &mut World, seed: u64, round: u64) {
        let mut random = seeded(seed.wrapping_add(round.wrapping_mul(0x9e37_79b9_7f4a_7c15)), "chaos");
        let mut traffic = Traffic::over(world.settings.domain, seeded(random.random(), "traffic"));
        for _ in 0..self.actions {
            world.run_for(Duration::from_micros(random.random_range(0..=self.gap_us)));
            self.act(world, &mut random, &mut traffic);
        }
    }

    fn act(&self, world: &mut World, random: &mut Random, traffic: &mut Traffic) {
        let client = random.random_range(0..world.client_count().max(1));
        let name = NAMES[random.random_range(0..NAMES.len())];
        let there = client < world.client_count();
        match self.choose(random) {
            Some(Action::Publish) if there => {
                world.publish(client, &traffic.event());
            }
            Some(Action::Subscribe) if there => {
                world.subscribe(client, name, traffic.filter());
            }
            Some(Action::Unsubscribe) if world.subscriptions(client).iter().any(|known| **known == *name) => {
                world.unsubscribe(client, name);
            }
            Some(Action::Advertise) if there => {
                world.advertise(client, name, traffic.broad_filter());
            }
            Some(Action::Unadvertise) if world.advertisements(client).iter().any(|known| **known == *name) => {
                world.unadvertise(client, name);
            }
            Some(Action::DialAgain) => {
                let side = random.random_range(0..2);
                any(random, world.links(false)).into_iter().for_each(|link| world.dial_again(link, side));
            }
            Some(Action::Cut) => any(random, world.links(false)).into_iter().for_each(|link| world.cut(link)),
            Some(Action::Heal) => any(random, world.links(true)).into_iter().for_each(|link| world.heal(link)),
            Some(Action::Crash) => any(random, world.brokers(true)).into_iter().for_each(|broker| world.crash(broker)),
            Some(Action::Restart) => {
                any(random, world.brokers(false)).into_iter().for_each(|broker| world.start(broker));
            }
            Some(_) | None => {}
        }
    }

    fn choose(&self, random: &mut Random) -> Option<Action> {
        let weights = [
            (self.publish, Action::Publish),
            (self.subscribe, Action::Subscribe),
            (self.unsubscribe, Action::Unsubscribe),
            (self.advertise, Action::Advertise),
            (self.unadvertise, Action::Unadvertise),
            (self.dial_again, Action::DialAgain),
            (self.cut, Action::Cut),
            (self.heal, Action::Heal),
            (self.crash, Action::Crash),
            (self.restart, Action::Restart),
        ];
        let total: u64 = weights.iter().map(|&(weight, _)| u64::from(weight)).sum();
        let mut draw = random.random_range(0..total.max(1));
        for (weight, action) in weights {
            match draw.checked_sub(u64::from(weight)) {
                Some(rest) => draw = rest,
                None => return Some(action),
            }
        }
        None
    }
}

/// One of these, if there is any.
fn any(random: &mut Random, places: Vec<usize>) -> Option<usize> {
    (!places.is_empty()).then(|| places[random.random_range(0..places.len())])
}

#[derive(Clone, Copy)]
enum Action {
    Publish,
    Subscribe,
    Unsubscribe,
    Advertise,
    Unadvertise,
    DialAgain,
    Cut,
    Heal,
    Crash,
    Restart,
}
