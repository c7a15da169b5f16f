//! A random schedule: a network, its clients, and an explicit list of all that happens to them.
//!
//! All is drawn beforehand, from the seed, so that a schedule can be cut down step by step. Steps need not apply: what heals a
//! link that is whole does nothing.

use crate::leaf::Leaves;
use crate::link::{Dial, LinkSettings};
use crate::scenario::{ClientPlan, LeafPlan, Scenario, Times};
use crate::step::Step;
use crate::topology::{Shape, Topology};
use crate::traffic::Traffic;
use crate::{Random, ScenarioError, seeded};
use rand::RngExt;
use std::collections::BTreeMap;

/// Names that a client uses: few, so that it replaces and withdraws what stands.
pub(super) const NAMES: [&str; 4] = ["w", "x", "y", "z"];

/// Things done between the beginning and the end of a schedule.
const ACTIONS: usize = 250;

/// Of so many things that happen about one is a [rhythm](super::rhythm).
const RHYTHMS: u32 = 25;

/// What is kept for a while has run out after this.
const LATER_MS: u64 = 45_000;

/// Draws the schedule of a seed, on a network of so many brokers, leaves among them.
///
/// # Errors
/// If that is none or too many.
pub fn schedule(seed: u64, brokers: usize) -> Result<Scenario, ScenarioError> {
    let mut random = seeded(seed, "explore");
    let links = link_settings(&mut random);
    let leaves = if random.random_bool(0.5) { random.random_range(0..=brokers / 3) } else { 0 };
    let (topology, leaf_plans) = network(brokers, leaves, &mut random)?;
    let mut draft = Draft::new(seed, random, &topology, &leaf_plans, links.detection_us[1].div_ceil(1_000));
    let clients = draft.clients();
    let steps = draft.steps();
    let publish_on_answers = draft.random.random_bool(0.5);
    let gather_ms = [None, None, Some(0), Some(50)][draft.random.random_range(0..4)];
    let (grace_ms, narrowing_ms) = (Some(draft.grace_ms), Some(draft.narrowing_ms));
    Ok(Scenario {
        name: format!("explored with seed {seed}"),
        seed,
        topology,
        leaf_plans,
        links,
        times: Times { grace_ms, narrowing_ms, gather_ms, ..Times::default() },
        clients,
        publish_on_answers,
        steps,
        ..Scenario::default()
    })
}

fn link_settings(random: &mut Random) -> LinkSettings {
    LinkSettings {
        delay_us: [[1_000, 10_000], [100, 2_000], [1_000, 60_000]][random.random_range(0..3)],
        jitter_us: [0, 3_000, 20_000][random.random_range(0..3)],
        detection_us: [[1_000, 500_000], [0, 50_000], [0, 2_500_000]][random.random_range(0..3)],
        redial_us: [[10_000, 1_000_000], [1_000, 50_000]][random.random_range(0..2)],
        cost: [[1, 1], [1, 4]][random.random_range(0..2)],
        bandwidth: [None, Some(200_000), Some(60_000)][random.random_range(0..3)],
        dial: [Dial::One, Dial::Both][random.random_range(0..2)],
        self_dials: random.random_bool(0.2),
        ..LinkSettings::default()
    }
}

/// The links by name, so that a part of the network stays what it is when another part is left out.
fn network(brokers: usize, leaves: usize, random: &mut Random) -> Result<(Topology, Vec<LeafPlan>), ScenarioError> {
    let core = brokers - leaves;
    let shape = match random.random_range(0..10) {
        0 => Shape::Line,
        1 => Shape::Ring,
        2 => Shape::Tree,
        3 if core <= 12 => Shape::Clique,
        _ => Shape::Random,
    };
    let drawn = Topology { degree: random.random_range(2.2..4.5), ..Topology::new(shape, core) };
    let mut names = drawn.names()?;
    let links = drawn.edges(random)?.into_iter().map(|ends| ends.map(|end| names[end].clone())).collect();
    let anywhere = random.random_bool(0.5);
    let plan =
        Leaves { count: leaves, depth: random.random_range(1..=3), uplinks: random.random_range(1..=3), anywhere };
    let topology = Topology { names: names.clone(), links, ..Topology::new(Shape::Links, core) };
    names.extend(plan.names());
    let uplinks = plan.uplinks(core, random).into_iter();
    let named = uplinks.map(|places| places.into_iter().map(|place| names[place].clone()).collect::<Vec<_>>());
    let leaf_plans = plan.names().into_iter().zip(named).filter(|(_, uplinks)| !uplinks.is_empty());
    Ok((topology, leaf_plans.map(|(name, uplinks)| LeafPlan { name, uplinks }).collect()))
}

/// A schedule in the making.
pub(super) struct Draft {
    pub(super) random: Random,
    pub(super) traffic: Traffic,
    /// The core first, then the leaves.
    pub(super) brokers: Vec<String>,
    pub(super) core: usize,
    pub(super) links: Vec<[String; 2]>,
    /// Each is called after its broker.
    pub(super) clients: Vec<String>,
    /// Clients that publish.
    pub(super) publishers: Vec<String>,
    /// Weights of the faults, in percent of what they are.
    pub(super) storminess: u32,
    pub(super) grace_ms: u64,
    pub(super) narrowing_ms: u64,
    /// It takes at most so long to find a link dead.
    pub(super) detection_ms: u64,
    pub(super) steps: Vec<Step>,
}

impl Draft {
    fn new(seed: u64, mut random: Random, topology: &Topology, leaves: &[LeafPlan], detection_ms: u64) -> Draft {
        let mut links = topology.links.clone();
        for leaf in leaves {
            links.extend(leaf.uplinks.iter().map(|uplink| [leaf.name.clone(), uplink.clone()]));
        }
        let mut brokers = topology.names.clone();
        brokers.extend(leaves.iter().map(|leaf| leaf.name.clone()));
        let storminess = [0, 50, 100, 100, 300][random.random_range(0..5)];
        let grace_ms = [6_000, 10_000][random.random_range(0..2)];
        let narrowing_ms = [6_000, 20_000][random.random_range(0..2)];
        Draft {
            grace_ms,
            narrowing_ms,
            detection_ms,
            traffic: Traffic::new(seeded(seed, "explored traffic")),
            core: topology.names.len(),
            brokers,
            links,
            clients: Vec::new(),
            publishers: Vec::new(),
            storminess,
            steps: Vec::new(),
            random,
        }
    }

    pub(super) fn one<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        (!of.is_empty()).then(|| of[self.random.random_range(0..of.len())].clone())
    }

    fn clients(&mut self) -> Vec<ClientPlan> {
        let mut plans = Vec::new();
        for broker in self.brokers.clone() {
            for number in 0..self.random.random_range(0..=2) {
                let name = format!("{broker}-{number}");
                let mut plan = ClientPlan {
                    name: name.clone(),
                    broker: broker.clone(),
                    subscribe: BTreeMap::new(),
                    advertise: BTreeMap::new(),
                };
                for name in &NAMES[..self.random.random_range(0..=3)] {
                    plan.subscribe.insert((*name).to_owned(), self.traffic.filter().to_string());
                }
                if self.random.random_bool(0.5) {
                    self.publishers.push(name.clone());
                    if self.random.random_bool(0.5) {
                        plan.advertise.insert(NAMES[0].to_owned(), self.traffic.broad_filter().to_string());
                    }
                }
                self.clients.push(name);
                plans.push(plan);
            }
        }
        plans
    }

    fn steps(&mut self) -> Vec<Step> {
        self.settle();
        let gap_ms = [3, 20, 60, 200][self.random.random_range(0..4)];
        for _ in 0..ACTIONS {
            let ms = self.random.random_range(0..=gap_ms);
            self.wait(ms);
            self.act();
        }
        self.steps.extend([Step::HealAll, Step::RestartAll, Step::ConnectAll]);
        self.settle();
        for _ in 0..2 {
            for client in self.publishers.clone() {
                self.publish(client);
                self.wait(1);
            }
        }
        self.settle();
        self.wait(LATER_MS);
        self.settle();
        self.steps.extend([Step::CheckFresh, Step::UnsubscribeAll]);
        self.settle();
        self.steps.push(Step::CheckEmpty);
        std::mem::take(&mut self.steps)
    }

    pub(super) fn settle(&mut self) {
        self.steps.push(Step::Settle { within_ms: Some(150_000) });
    }

    /// In between the network settles as it is, in parts or not. What leaves hold back while they have no uplink would
    /// outlast that, though: then all is made whole before.
    fn settle_between(&mut self) {
        if self.core < self.brokers.len() {
            self.steps.extend([Step::HealAll, Step::RestartAll]);
        }
        self.settle();
    }

    pub(super) fn wait(&mut self, ms: u64) {
        if ms > 0 {
            self.steps.push(Step::Wait { ms, us: 0 });
        }
    }

    pub(super) fn publish(&mut self, client: String) {
        let event = Some(self.traffic.event().to_json());
        self.steps.push(Step::Publish { client: Some(client), event, count: 1, gap_us: 0 });
    }

    /// One thing of those that happen in a network.
    fn act(&mut self) {
        if self.random.random_ratio(1, RHYTHMS) {
            return self.rhythm();
        }
        let faults = 40 * self.storminess / 100;
        if self.random.random_range(0..100 + faults) >= 100 {
            return self.fault();
        }
        let Some(client) = self.one(&self.clients.clone()) else { return };
        let name = NAMES[self.random.random_range(0..NAMES.len())].to_owned();
        match self.random.random_range(0..100) {
            0..60 => {
                if let Some(client) = self.one(&self.publishers.clone()) {
                    self.publish(client);
                }
            }
            60..74 => {
                let filter = Some(self.traffic.filter().to_string());
                self.steps.push(Step::Subscribe { client, name, filter, wait: false });
            }
            74..84 => self.steps.push(Step::Unsubscribe { client, name }),
            84..87 => {
                let filter = Some(self.traffic.broad_filter().to_string());
                self.steps.push(Step::Advertise { client, name, filter });
            }
            87..90 => self.steps.push(Step::Unadvertise { client, name }),
            90..93 => self.steps.push(Step::Disconnect { client }),
            93..97 => self.steps.push(Step::Connect { client }),
            97 => {
                let (ms, queue) = (self.random.random_range(10..2_000), 4);
                self.steps.push(Step::StallClient { client, ms, queue });
            }
            98 => self.settle_between(),
            _ => self.dial_again(),
        }
    }

    fn dial_again(&mut self) {
        if let Some(mut link) = self.one(&self.links.clone()) {
            if self.random.random_bool(0.5) {
                link.reverse();
            }
            self.steps.push(Step::DialAgain { link });
        }
    }

    fn fault(&mut self) {
        let (Some(link), Some(broker)) = (self.one(&self.links.clone()), self.one(&self.brokers.clone())) else {
            return;
        };
        match self.random.random_range(0..100) {
            0..22 => self.steps.push(Step::Cut { link }),
            22..44 => self.heal_something(link),
            44..50 => self.steps.push(Step::Crash { broker }),
            50..58 => self.restart_something(broker),
            58..66 => {
                let ms = [0, 5, 100, 1_000][self.random.random_range(0..4)];
                self.steps.push(Step::Crash { broker: broker.clone() });
                self.wait(ms);
                self.steps.push(Step::Restart { broker });
            }
            66..76 => {
                let delay = [0, 5_000, 50_000, 150_000];
                let [control_us, events_us] = [0, 1].map(|_| delay[self.random.random_range(0..delay.len())]);
                let bandwidth = [None, None, Some(20_000)][self.random.random_range(0..3)];
                self.steps.push(Step::Slow { link, control_us, events_us, bandwidth });
            }
            76..83 => self.steps.push(Step::Stall { link, ms: self.random.random_range(10..2_000) }),
            83..92 => {
                let [down_ms, up_ms] = [0, 1].map(|_| [5, 60, 600][self.random.random_range(0..3)]);
                self.steps.push(Step::Flap { link, times: self.random.random_range(2..8), down_ms, up_ms });
            }
            92..95 => self.partition(),
            95..97 => self.steps.push(Step::HealAll),
            97 => self.steps.push(Step::RestartAll),
            98 => self.wait(4_000),
            _ => self.wait(12_000),
        }
    }

    /// Mostly a link that was cut or slowed.
    fn heal_something(&mut self, other: [String; 2]) {
        let touched = self.steps.iter().filter_map(|step| match step {
            Step::Cut { link } | Step::Slow { link, .. } => Some(link.clone()),
            _ => None,
        });
        let touched: Vec<[String; 2]> = touched.collect();
        let recent = &touched[touched.len().saturating_sub(10)..];
        let link = self.one(recent).unwrap_or(other);
        self.steps.push(Step::Heal { link });
    }

    /// Mostly a broker that has crashed.
    fn restart_something(&mut self, other: String) {
        let crashed = self.steps.iter().filter_map(|step| match step {
            Step::Crash { broker } => Some(broker.clone()),
            _ => None,
        });
        let crashed: Vec<String> = crashed.collect();
        let recent = &crashed[crashed.len().saturating_sub(4)..];
        let broker = self.one(recent).unwrap_or(other);
        self.steps.push(Step::Restart { broker });
    }

    /// Two parts of the core; leaves fall to either.
    pub(super) fn partition(&mut self) {
        let part: Vec<String> = self.brokers[..self.core].to_vec();
        let part: Vec<String> = part.into_iter().filter(|_| self.random.random_bool(0.5)).collect();
        self.steps.push(Step::Partition { groups: vec![part] });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_one_schedule_which_survives_being_written() {
        for seed in 0..20 {
            let drawn = schedule(seed, 12).expect("a good size");
            assert_eq!(drawn, schedule(seed, 12).expect("a good size"));
            assert_ne!(drawn, schedule(seed + 1, 12).expect("a good size"));
            let text = drawn.to_toml();
            let read = Scenario::parse(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
            assert_eq!(read, drawn, "seed {seed}");
        }
    }
}
